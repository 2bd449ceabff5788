// Package v1alpha1 is the API inspirit941.dev/v1alpha1. Its kind Kluster asks a cloud for a managed Kubernetes cluster.
//
// The comments that begin with a plus sign are tags. The tags in this file are global: they apply to the whole package.
// Tags above a type or a field are local: they apply only to that type or field.
//
// +k8s:deepcopy-gen=package
// +groupName=inspirit941.dev
// +groupGoName=Inspirit941
// +kubebuilder:object:generate=true
package v1alpha1
