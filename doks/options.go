package doks

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/clock"
)

// State is that of a cluster.
type State string

// The states of a cluster. godo v1.236.0 cannot read StateDeleting: a client that
// gets to see it fails to read this cluster, and every list that holds it.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StateUpgrading    State = "upgrading"
	StateDegraded     State = "degraded"
	StateError        State = "error"
	StateDeleted      State = "deleted"
	StateDeleting     State = "deleting"
)

// DeleteAtOnce is the DeleteState of clusters that are gone as soon as their deletion is asked for.
const DeleteAtOnce State = "none"

// Options say how an Emulator behaves. A time that is zero takes no time, a limit
// that is zero does not exist; [Defaults] has the values that the command uses.
type Options struct {
	// Tokens may do everything, ReadOnlyTokens may read, and ClusterTokens may do everything with
	// clusters, but not ask whose they are. One of any is needed.
	Tokens, ReadOnlyTokens, ClusterTokens []string
	// Team is the UUID of the team that all tokens belong to, one that is always the same if empty.
	Team string

	// ProvisionTime is how long a cluster is provisioning.
	ProvisionTime time.Duration
	// NodeTime is how long a node takes to run once its control plane does, and to go.
	NodeTime time.Duration
	// UpgradeTime is how long a cluster is upgrading.
	UpgradeTime time.Duration
	// DeleteTime is how long a cluster stays after its deletion was asked for.
	DeleteTime time.Duration
	// EndState is what provisioning ends in: StateRunning if empty, StateDegraded or StateError.
	EndState State
	// DeleteState is what is seen for the DeleteTime: StateDeleted if empty, StateDeleting or DeleteAtOnce.
	DeleteState State

	// DropletLimit is how many nodes the account may have.
	DropletLimit int
	// RequestsPerMinute and RequestsPerHour bound what one token may ask.
	RequestsPerMinute, RequestsPerHour int

	// Faults go wrong from the beginning; see also AddFault.
	Faults []Fault
	// StateFile keeps the clusters from one run to the next, "" forgets them.
	StateFile string
	// Planes make the control planes of the clusters; without any the clusters are names only.
	Planes Planes
	// Clock tells the time, by default the machine's.
	Clock clock.Clock
	// Log gets a line a request, without anything secret. nil keeps silent.
	Log *slog.Logger
}

// Defaults are the options of the command, except for the tokens.
func Defaults() Options {
	return Options{
		ProvisionTime:     3 * time.Second,
		NodeTime:          time.Second,
		UpgradeTime:       2 * time.Second,
		DeleteTime:        time.Second,
		EndState:          StateRunning,
		DeleteState:       StateDeleted,
		DropletLimit:      10,
		RequestsPerMinute: 250,
		RequestsPerHour:   5000,
	}
}

// complete fills in what was left empty and refuses what makes no sense.
func (o Options) complete() (Options, error) {
	if len(o.allTokens()) == 0 {
		return o, errors.New("no token: every request would be refused")
	}
	if o.Team == "" {
		o.Team = defaultTeam
	}
	if o.EndState == "" {
		o.EndState = StateRunning
	}
	if o.DeleteState == "" {
		o.DeleteState = StateDeleted
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, o.check()
}

func (o Options) check() error {
	for _, each := range []struct {
		name  string
		value time.Duration
	}{{"provision", o.ProvisionTime}, {"node", o.NodeTime}, {"upgrade", o.UpgradeTime}, {"delete", o.DeleteTime}} {
		if each.value < 0 {
			return fmt.Errorf("the %s time is %s: it cannot be negative", each.name, each.value)
		}
	}
	if o.DropletLimit < 0 || o.RequestsPerMinute < 0 || o.RequestsPerHour < 0 {
		return errors.New("a limit is negative: 0 means none")
	}
	if !endStates[o.EndState] {
		return fmt.Errorf("the end state is %q: choose running, degraded or error", o.EndState)
	}
	switch o.DeleteState {
	case StateDeleted, StateDeleting, DeleteAtOnce:
	default:
		return fmt.Errorf("the delete state is %q: choose none, deleted or deleting", o.DeleteState)
	}
	if _, err := uuid.Parse(o.Team); err != nil {
		return fmt.Errorf("the team is %q: it must be a UUID", o.Team)
	}
	return o.checkTokens()
}

func (o Options) allTokens() []string {
	return slices.Concat(o.Tokens, o.ReadOnlyTokens, o.ClusterTokens)
}

// checkTokens refuses what no client could send, and what would mean two things. It quotes no token.
func (o Options) checkTokens() error {
	seen := map[string]bool{}
	for _, token := range o.allTokens() {
		if token == "" {
			return errors.New("a token is empty")
		}
		if seen[token] {
			return errors.New("a token is given twice")
		}
		seen[token] = true
	}
	return nil
}
