package greeting

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// ConditionReady is True while the ConfigMap contains the text.
	ConditionReady = "Ready"
	// ReasonGreeted means that the ConfigMap contains the text.
	ReasonGreeted = "Greeted"
	// ReasonNameTaken means that the ConfigMap exists, and that the Greeting does not control it.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused means that the API server refuses to store the ConfigMap, for example because of a quota.
	ReasonRefused = "Refused"
)

// GreetingSpec is the desired state.
//
//nolint:revive // kubebuilder begins the names of such types with the kind
type GreetingSpec struct {
	// Name is the name of the person to greet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Language is the language of the text.
	// +kubebuilder:validation:Enum=en;de;fr
	// +kubebuilder:default=en
	// +optional
	Language string `json:"language,omitempty"`
}

// GreetingStatus is the observed state.
//
//nolint:revive // as for GreetingSpec
type GreetingStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Greeting greets one person.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   GreetingSpec   `json:"spec"`
	Status GreetingStatus `json:"status,omitzero"`
}

// GreetingList is the answer to a list request.
// +kubebuilder:object:root=true
//
//nolint:revive // as for GreetingSpec
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Greeting `json:"items"`
}

// GroupVersion is the API group and version of Greetings.
var GroupVersion = schema.GroupVersion{Group: "hello.example.com", Version: "v1"}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
