// Package v1alpha1 is the API inspirit941.dev/v1alpha1: the kind Kluster, which
// asks a cloud for a managed Kubernetes cluster.
//
// The comments that begin with a plus sign are tags. Those of this file are
// global: they hold for the whole package. Those above a type are local.
//
// +k8s:deepcopy-gen=package
// +groupName=inspirit941.dev
// +groupGoName=Inspirit941
// +kubebuilder:object:generate=true
package v1alpha1
