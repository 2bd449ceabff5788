// Package v1 defines the kind Guestbook of the API webapp.my.domain/v1.
//
// +kubebuilder:object:generate=true
// +groupName=webapp.my.domain
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the group and version of the kinds in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "webapp.my.domain", Version: "v1"}
	// SchemeBuilder collects the functions that AddToScheme calls.
	SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
		return nil
	})
	// AddToScheme adds the Go types of this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
