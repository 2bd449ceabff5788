// Package classroom creates, starts and removes the cluster that learners use in the workshop.
//
// Three providers implement one interface: embedded (a real control plane from bin/, with simulated nodes), kind (a
// kind cluster with real pods) and current (the cluster that the learner's kubeconfig names).
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

	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

// DefaultName is the name of the cluster if no other name is chosen.
const DefaultName = "workshop"

// Cluster is one classroom cluster, which may not exist yet.
type Cluster interface {
	// Up gets the cluster running: it creates, repairs or reuses the cluster. If the cluster is the learner's own, Up
	// copies its kubeconfig, checks that the cluster responds, and calls Options.Confirm, if set.
	Up(ctx context.Context) error
	// Choose points the link .workshop/kubeconfig at the cluster, unless the cluster is the learner's own. If the
	// cluster's name is not DefaultName, and the link points at an existing cluster, Choose leaves the link alone:
	// commands with NAME= must not change the cluster that commands without it find.
	Choose(ctx context.Context) error
	// Down removes the cluster and everything in it, unless the cluster is the learner's own. It returns nil if the
	// cluster does not exist.
	Down(ctx context.Context) error
	// Reset restores the cluster to the state it had when it was created, or creates the cluster if it does not exist.
	// It fails for the learner's own cluster.
	Reset(ctx context.Context) error
	// Status reports what is running. A cluster that isn't running is not an error.
	Status(ctx context.Context) (Status, error)
	// Kubeconfig returns the path of the file that gives access to the cluster.
	Kubeconfig() string
	// Environment returns the variables, as NAME=value, for a shell that works with the cluster.
	Environment() []string
}

// ImageLoader is a cluster that can load images into its nodes.
type ImageLoader interface {
	// Load copies images from the container engine to every node. It fails if one of the images does not exist.
	Load(ctx context.Context, images ...string) error
}

var _ ImageLoader = (*kind)(nil)

// Options choose a cluster.
type Options struct {
	Repo repo.Repo
	// Provider is one of the names in package providers.
	Provider string
	// Name distinguishes the clusters that a provider makes in one checkout.
	Name string
	// Port is the API server's port. If it is 0, a new cluster gets a free port.
	Port int
	// Nodes is the number of nodes, at least 1.
	Nodes int
	// Out receives progress, including most kind commands before they run.
	Out io.Writer
	// Confirm asks before Up uses a cluster that the workshop did not make. Up fails if Confirm returns an error. If
	// Confirm is nil, Up does not ask.
	Confirm func(ctx context.Context, question string) error
}

// MakeCommand returns the make command for a goal, for use in messages. It includes CLUSTER and NAME unless they have
// their defaults, so that a learner who copies the command doesn't reset or remove another cluster. The learner's own
// cluster needs no NAME.
func (o Options) MakeCommand(goal string) string {
	command := "make " + goal
	if o.Provider != providers.Embedded {
		command += " CLUSTER=" + o.Provider
	}
	if o.Name != DefaultName && o.Provider != providers.Current {
		command += " NAME=" + o.Name
	}
	return command
}

// clusterName matches names that both kind and file systems accept.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// New returns the cluster that the options choose.
func New(options Options) (Cluster, error) {
	if !clusterName.MatchString(options.Name) {
		return nil, fmt.Errorf("cluster name %q: use up to 32 lower-case letters and digits, with dashes only between them, such as NAME=demo", options.Name)
	}
	if options.Port < 0 || options.Port > 65535 {
		return nil, fmt.Errorf("port %d: choose one between 1 and 65535, or leave PORT out for a free one", options.Port)
	}
	if options.Nodes < 1 || options.Nodes > 1000 {
		return nil, fmt.Errorf("%d nodes: choose a number between 1 and 1000", options.Nodes)
	}
	switch options.Provider {
	case providers.Embedded:
		return newEmbedded(options)
	case providers.Kind:
		return newKind(options), nil
	case providers.Current:
		return newCurrent(options), nil
	}
	return nil, fmt.Errorf("there is no provider CLUSTER=%s: choose one of %s", options.Provider, strings.Join(providers.All(), ", "))
}

// environment returns the variables that a shell needs to work with a cluster. They put bin/ first on the PATH, select
// the cluster's kubeconfig, keep kubectl's cache out of the home directory, and make kubectl ignore the learner's
// kuberc.
func environment(r repo.Repo, kubeconfig string) []string {
	return []string{
		"PATH=" + r.Bin() + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + kubeconfig,
		"KUBECACHEDIR=" + filepath.Join(r.State(), "kube-cache"),
		"KUBERC=off",
	}
}

// Status describes a cluster and its components.
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

// State summarizes a cluster in one word.
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
	// PID is 0 when the component is not running.
	PID int `json:"pid"`
	// Memory is the resident set size in bytes.
	Memory uint64 `json:"memory"`
	// Started is when the process was started.
	Started time.Time `json:"started,omitzero"`
	// CPUSeconds is the processor time used so far.
	CPUSeconds float64 `json:"cpuSeconds"`
}

// Memory returns the resident memory of all components together, in bytes.
func (s Status) Memory() uint64 {
	var total uint64
	for _, component := range s.Components {
		total += component.Memory
	}
	return total
}
