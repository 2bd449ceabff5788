package v1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PasswordKey is the key of the Secret that holds the password.
	PasswordKey = "password"
	// ProtectionAnnotation protects a Password while its value is ProtectionEnabled: the webhook refuses the deletion.
	ProtectionAnnotation = "secret.example.com/deletion-protection"
	// ProtectionEnabled is the value of ProtectionAnnotation that turns the protection on.
	ProtectionEnabled = "enabled"
)

// Go must write a spec exactly as it has read it. The defaulting webhook answers with the difference between the object
// that it has received and the object as Go writes it, so anything that Go adds, drops or reformats would change what
// the author wrote. For this reason, Go leaves out all unset fields, even required ones. A required number that may be
// 0 is a pointer, because an int32 can't tell a 0 from a missing number. A duration is a string, because a
// metav1.Duration turns 720h into 720h0m0s.

// PasswordSpec describes the password, and names the Secret that holds it.
type PasswordSpec struct {
	// SecretName is the name of the Secret that holds the password, under the key "password". It can't be
	// changed, because programs that read the Secret would not notice. The default is the Password's
	// name: the defaulting webhook fills it in, and without the webhook the operator assumes it.
	// +optional
	//workshop:markers 5.1a
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="spec.secretName must be a DNS subdomain: lower-case letters, digits, '-' and '.'"
	SecretName string `json:"secretName,omitempty"`

	// Policy describes what the password must be like. When the policy changes, the operator makes a new password.
	// +optional
	// +kubebuilder:default={}
	Policy PasswordPolicy `json:"policy,omitzero"`

	// Rotation says when a new password replaces the current one. Without it, the password is never rotated.
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// PasswordPolicy describes what a password must be like.
//
// +kubebuilder:validation:XValidation:rule="!has(self.require) || !has(self.length) || self.require.map(r, r.count).sum() <= self.length",message="the counts of spec.policy.require together must not be more than spec.policy.length"
//
//workshop:markers 5.1a +kubebuilder:validation
type PasswordPolicy struct {
	// Length is the number of characters, 8 to 128.
	// +optional
	// +kubebuilder:default=20
	//workshop:markers 5.1a
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=128
	Length int32 `json:"length,omitempty"`

	// Require says how many characters must belong to a class. All others are letters.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:default={{class: Digit, count: 5}}
	//workshop:markers 5.1a
	// +kubebuilder:validation:MaxItems=2
	Require []Requirement `json:"require,omitzero"`

	// Case says which letters a password may contain.
	// +optional
	// +kubebuilder:default=Mixed
	//workshop:markers 5.1a
	// +kubebuilder:validation:Enum=Mixed;Lower
	Case LetterCase `json:"case,omitempty"`

	// Repeat says whether a character may occur more than once. A password without repetition is weaker, but some systems
	// require it.
	// +optional
	// +kubebuilder:default=Allowed
	//workshop:markers 5.1a
	// +kubebuilder:validation:Enum=Allowed;Forbidden
	Repeat Repetition `json:"repeat,omitempty"`
}

// Requirement asks for a number of characters of a class.
type Requirement struct {
	// Class is the class of the characters.
	// +required
	// +kubebuilder:validation:Enum=Digit;Symbol
	Class CharacterClass `json:"class,omitempty"`
	// Count is the number of characters of the class, 0 to 128.
	// +required
	//workshop:markers 5.1a
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	Count *int32 `json:"count,omitempty"`
}

// CharacterClass is a set of characters other than letters.
type CharacterClass string

// The classes of characters.
const (
	// ClassDigit is 0 to 9.
	ClassDigit CharacterClass = "Digit"
	// ClassSymbol is the 30 printable ASCII characters that the generator uses as symbols.
	ClassSymbol CharacterClass = "Symbol"
)

// LetterCase says which letters a password may contain.
type LetterCase string

// The letter cases.
const (
	// CaseMixed allows upper-case and lower-case letters.
	CaseMixed LetterCase = "Mixed"
	// CaseLower allows lower-case letters only, for systems that ignore case.
	CaseLower LetterCase = "Lower"
)

// Repetition says whether a character may occur more than once in a password.
type Repetition string

// The values of Repetition.
const (
	// RepeatAllowed lets a character appear any number of times.
	RepeatAllowed Repetition = "Allowed"
	// RepeatForbidden lets each character appear at most once.
	RepeatForbidden Repetition = "Forbidden"
)

// Rotation says when a new password is due.
type Rotation struct {
	// After is the age at which a password is replaced, a minute or more, such as "720h".
	// +required
	//workshop:markers 5.1a
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="spec.rotation.after must be at least 1m"
	After string `json:"after,omitempty"`
}

// ConditionReady is the type of the only condition that the operator sets. It is True while the Secret holds a password
// that meets the policy, and nothing blocks the Password.
const ConditionReady = "Ready"

// The reasons of the condition Ready.
const (
	// ReasonGenerated: the Secret holds a password that meets the policy.
	ReasonGenerated = "Generated"
	// ReasonImpossible: no password can meet the policy, or no Secret can have the name in the spec. You have to change
	// the spec.
	ReasonImpossible = "Impossible"
	// ReasonNameChanged: the Password already has a Secret, but not under its effective name (see EffectiveSecretName).
	// Change spec.secretName back, or delete that Secret.
	ReasonNameChanged = "NameChanged"
	// ReasonNameTaken: a Secret with the effective name (see EffectiveSecretName) exists, but neither the Password nor a
	// deleted Password of the same name controls it.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the API server refuses to create or change the Secret, for example because of a quota or a policy of
	// the cluster.
	ReasonRefused = "Refused"
	// ReasonReplacing: the Secret is being deleted, or belongs to a deleted Password that had this Password's name; a new
	// Secret will follow.
	ReasonReplacing = "Replacing"
)

// The states of a Password.
const (
	// StateReady: the Secret holds a password that meets the policy.
	StateReady = "Ready"
	// StatePending: the Secret is being removed, and a new one will follow.
	StatePending = "Pending"
	// StateFailed: the Password is blocked until you change it, or remove what blocks it.
	StateFailed = "Failed"
)

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
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=workshop
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secretName`
// +kubebuilder:printcolumn:name="Rotated",type=date,JSONPath=`.status.lastRotated`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
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

// EffectiveSecretName returns the name of the Secret: spec.secretName or, if that is empty, the Password's own name.
func (p *Password) EffectiveSecretName() string {
	return cmp.Or(p.Spec.SecretName, p.Name)
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
