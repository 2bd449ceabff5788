// Package providers names the providers of the workshop's cluster. The names are the values of CLUSTER= on the command
// line, and of cluster= in a chapter.
package providers

const (
	// Embedded is a control plane from bin/ with simulated nodes.
	Embedded = "embedded"
	// Kind is a kind cluster with real pods.
	Kind = "kind"
	// Current is the cluster that the learner's own kubeconfig names.
	Current = "current"
)

// All returns the names of all providers.
func All() []string { return []string{Embedded, Kind, Current} }
