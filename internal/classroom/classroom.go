// Package classroom runs the cluster that the workshop is taught on.
//
// Three providers stand behind one interface: embedded (a real control plane
// from bin/, with simulated nodes), kind (a kind cluster with
// real pods) and current (whatever cluster the learner's kubeconfig names).
package classroom

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/operator-workshop/internal/repo"
)

// The names of the providers, as given to CLUSTER=.
const (
	Embedded = "embedded"
	Kind     = "kind"
	Current  = "current"
)

// DefaultName is the name of the cluster when none is chosen.
const DefaultName = "workshop"

// Cluster is one classroom cluster, which may not exist yet.
type Cluster interface {
	// Up makes the cluster run: it creates, repairs or finds it as needed.
	Up(ctx context.Context) error
	// Down removes the cluster and all it holds. A cluster that does not exist is no error.
	Down(ctx context.Context) error
	// Reset takes the cluster back to the state it had when it was created.
	Reset(ctx context.Context) error
	// Status reports what runs. A cluster that does not run is no error.
	Status(ctx context.Context) (Status, error)
	// Kubeconfig is the path of the file that gives access to the cluster.
	Kubeconfig() string
	// Environment holds the variables, as NAME=value, of a shell that works with the cluster.
	Environment() []string
}

// ImageLoader is a cluster whose nodes can be given images.
type ImageLoader interface {
	// Load copies images of the container engine to every node. Fails when one of them does not exist.
	Load(ctx context.Context, images ...string) error
}

var _ ImageLoader = (*kind)(nil)

// Options choose a cluster.
type Options struct {
	Repo repo.Repo
	// Provider is Embedded, Kind or Current.
	Provider string
	// Name tells clusters of one checkout apart.
	Name string
	// Port is the API server's port; 0 chooses a free one.
	Port int
	// Nodes is the number of nodes, 1 at least.
	Nodes int
	// Aside leaves .workshop/kubeconfig as it is: a cluster for tests must not become the one that a learner works with.
	Aside bool
	// Out receives what is done, command by command.
	Out io.Writer
	// Confirm is asked before a cluster that the workshop has not made is changed: Up fails
	// with its error. Nil agrees.
	Confirm func(ctx context.Context, question string) error
}

// MakeCommand is how a message names a goal of make for the cluster that the options choose: without its CLUSTER and
// NAME, the command that a learner copies would reset or remove another one.
func (o Options) MakeCommand(goal string) string {
	command := "make " + goal
	if o.Provider != Embedded {
		command += " CLUSTER=" + o.Provider
	}
	if o.Name != DefaultName && o.Provider != Current {
		command += " NAME=" + o.Name
	}
	return command
}

// clusterName is what kind and file systems accept.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// New returns the cluster that the options choose.
func New(options Options) (Cluster, error) {
	if !clusterName.MatchString(options.Name) {
		return nil, fmt.Errorf("cluster name %q: use up to 32 lower-case letters, digits and dashes, such as NAME=demo", options.Name)
	}
	if options.Port < 0 || options.Port > 65535 {
		return nil, fmt.Errorf("port %d: choose one between 1 and 65535, or leave PORT out for a free one", options.Port)
	}
	if options.Nodes < 1 || options.Nodes > 1000 {
		return nil, fmt.Errorf("%d nodes: choose a number between 1 and 1000", options.Nodes)
	}
	switch options.Provider {
	case Embedded:
		return newEmbedded(options)
	case Kind:
		return newKind(options), nil
	case Current:
		return newCurrent(options), nil
	}
	return nil, fmt.Errorf("there is no provider CLUSTER=%s: choose one of %s", options.Provider, strings.Join([]string{Embedded, Kind, Current}, ", "))
}

// environment is what a shell needs to work with a cluster: bin/ first on the PATH,
// the cluster's kubeconfig, and kubectl's own files kept out of the home directory.
func environment(r repo.Repo, kubeconfig string) []string {
	return []string{
		"PATH=" + r.Bin() + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + kubeconfig,
		"KUBECACHEDIR=" + filepath.Join(r.State(), "kube-cache"),
		"KUBERC=off",
	}
}

// Status is what runs of a cluster.
type Status struct {
	Name       string      `json:"name"`
	Provider   string      `json:"provider"`
	State      State       `json:"state"`
	Detail     string      `json:"detail,omitempty"`
	Server     string      `json:"server,omitempty"`
	Version    string      `json:"version,omitempty"`
	Kubeconfig string      `json:"kubeconfig,omitempty"`
	Nodes      int         `json:"nodes"`
	ReadyNodes int         `json:"readyNodes"`
	Components []Component `json:"components,omitempty"`
}

// State says in one word how a cluster is.
type State string

// The states of a cluster.
const (
	StateAbsent  State = "absent"
	StateRunning State = "running"
	StateStopped State = "stopped"
	StateBroken  State = "broken"
)

// Component is a program of the control plane.
type Component struct {
	Name string `json:"name"`
	// PID is 0 when the component does not run.
	PID int `json:"pid"`
	// Memory is the resident set size in bytes.
	Memory uint64 `json:"memory"`
	// Started is when the process was started.
	Started time.Time `json:"started,omitzero"`
	// CPUSeconds is the processor time used so far.
	CPUSeconds float64 `json:"cpuSeconds"`
}

// Memory is the resident memory of all components together, in bytes.
func (s Status) Memory() uint64 {
	var total uint64
	for _, component := range s.Components {
		total += component.Memory
	}
	return total
}
