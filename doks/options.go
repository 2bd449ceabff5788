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

// State is the state of a cluster.
type State string

// The states of a cluster. godo v1.236.0 cannot parse StateDeleting: it can read neither a cluster in that state nor a
// list that contains one.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StateUpgrading    State = "upgrading"
	StateDegraded     State = "degraded"
	StateError        State = "error"
	StateDeleted      State = "deleted"
	StateDeleting     State = "deleting"
)

// DeleteAtOnce is a value of Options.DeleteState: clusters are gone as soon as their deletion is requested.
const DeleteAtOnce State = "none"

// Options say how an Emulator behaves. A zero duration means no delay, and a zero limit means no limit. With Planes,
// clusters and nodes may take longer to start, and nodes longer to disappear, because they wait for the control planes.
// [Defaults] returns the values that the command uses by default.
type Options struct {
	// Tokens may do everything, ReadOnlyTokens may only read, and ClusterTokens may do everything with clusters but not
	// read the account. At least one token is required.
	Tokens, ReadOnlyTokens, ClusterTokens []string
	// Team is the UUID of the team that all tokens belong to. If it is empty, a fixed UUID is used.
	Team string

	// ProvisionTime is how long provisioning a cluster takes.
	ProvisionTime time.Duration
	// NodeTime is how long a node takes to start once its control plane is running, how long it drains, and how long its
	// deletion then takes.
	NodeTime time.Duration
	// UpgradeTime is how long upgrading a cluster takes.
	UpgradeTime time.Duration
	// DeleteTime is how long a cluster remains after its deletion is requested.
	DeleteTime time.Duration
	// EndState is the state after provisioning: StateRunning, which is the default, StateDegraded or StateError.
	EndState State
	// DeleteState is the state during DeleteTime: StateDeleted, which is the default, or StateDeleting. DeleteAtOnce
	// skips DeleteTime.
	DeleteState State

	// DropletLimit is how many nodes the account may have. A pool with autoscaling counts at its maximum size.
	DropletLimit int
	// RequestsPerMinute and RequestsPerHour limit the requests with one token.
	RequestsPerMinute, RequestsPerHour int

	// Faults are active from the beginning. AddFault adds more.
	Faults []Fault
	// StateFile is the path of the file that keeps the clusters from one run to the next. Without a path, they are
	// forgotten.
	StateFile string
	// Planes makes the control planes of the clusters. If it is nil, the clusters have none.
	Planes Planes
	// Clock tells the time. By default it is the machine's clock.
	Clock clock.Clock
	// Log receives a line for each request to the API, and the emulator's own errors, without anything secret. If it is
	// nil, nothing is logged.
	Log *slog.Logger
}

// Defaults returns the default options of the command, except for the tokens.
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

// complete fills in what was left empty, and rejects invalid options.
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

// checkTokens rejects an empty token, and a token given twice, whose rights would be ambiguous. Its errors quote no
// token.
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
