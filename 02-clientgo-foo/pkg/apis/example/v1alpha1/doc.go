// Package v1alpha1 is the API example.com/v1alpha1: the kind Foo, whose
// controller keeps one Deployment running for each Foo.
//
// The comments that begin with a plus sign are tags. Those in this file apply to
// the whole package: every type gets a DeepCopy function, and the group is
// called example.com. `make generate` runs the generators that read the tags.
//
// +k8s:deepcopy-gen=package
// +groupName=example.com
// +kubebuilder:object:generate=true
package v1alpha1
