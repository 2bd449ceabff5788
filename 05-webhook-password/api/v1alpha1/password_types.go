package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PasswordSpec describes the password.
//
// The rule checks whether the fields are there, because the API server also applies it
// to the default of the spec, {}, before it fills in the defaults of the fields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.digits) || !has(self.symbols) || !has(self.length) || self.digits + self.symbols <= self.length",message="spec.digits and spec.symbols together must not be more than spec.length"
type PasswordSpec struct {
	// Length is the number of characters, 8 to 128.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=128
	Length int32 `json:"length,omitempty"`

	// Digits is the number of digits, 0 to 128.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	Digits *int32 `json:"digits,omitempty"`

	// Symbols is the number of symbols, 0 to 128.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	Symbols *int32 `json:"symbols,omitempty"`

	// CaseSensitive allows upper-case letters as well as lower-case ones.
	// +optional
	// +kubebuilder:default=true
	CaseSensitive *bool `json:"caseSensitive,omitempty"`

	// DisallowRepeat lets each character occur at most once.
	// +optional
	DisallowRepeat bool `json:"disallowRepeat,omitempty"`
}

// PasswordStatus reports what the operator has found and done.
type PasswordStatus struct {
	// State summarizes the condition Ready in one word.
	// +optional
	State string `json:"state,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SecretName is the name of the Secret that currently holds the password.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// LastRotated is when the current password was made.
	// +optional
	LastRotated *metav1.Time `json:"lastRotated,omitempty"`

	// NextRotation is when the current password will be replaced, unless it has to be replaced
	// earlier for another reason.
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// Fingerprint changes when the password does, but reveals nothing about it.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`

	// Conditions holds the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Password asks for a Secret with a random password.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Password struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state, written by users.
	// +optional
	// +kubebuilder:default={}
	Spec PasswordSpec `json:"spec,omitzero"`
	// Status is the observed state, written by the operator.
	// +optional
	Status PasswordStatus `json:"status,omitzero"`
}

// PasswordList is a list of Passwords.
//
// +kubebuilder:object:root=true
type PasswordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Passwords.
	Items []Password `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Password{}, &PasswordList{})
		return nil
	})
}
