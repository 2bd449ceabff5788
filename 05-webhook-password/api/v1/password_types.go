package v1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PasswordKey is the key of the Secret that holds the password.
	PasswordKey = "password"
	// ProtectionAnnotation on a Password makes the webhook refuse to delete it while its value is ProtectionEnabled.
	ProtectionAnnotation = "secret.example.com/deletion-protection"
	// ProtectionEnabled is the value of ProtectionAnnotation that protects.
	ProtectionEnabled = "enabled"
)

// Go must write a spec exactly as it has read it: the defaulting webhook answers with the object as Go writes it, so
// any other difference would change what the author wrote. That is why all fields, even required ones, are left
// out if they are empty; why a required number that may be 0 is a pointer, or else a missing one would come back as 0;
// and why a duration is a string: a metav1.Duration turns 720h into 720h0m0s.

// PasswordSpec says what password is wanted, and where.
type PasswordSpec struct {
	// SecretName is the Secret that holds the password, under the key "password". It can't be
	// changed, because programs that read the Secret would not notice. If it is left out, it is the Password's
	// name: the defaulting webhook fills it in, and without the webhook the operator assumes it.
	// +optional
	//workshop:markers 5.1a
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="spec.secretName must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	SecretName string `json:"secretName,omitempty"`

	// Policy is what the password must be like. A change of it makes a new password.
	// +optional
	// +kubebuilder:default={}
	Policy PasswordPolicy `json:"policy,omitzero"`

	// Rotation says when a new password replaces the current one; never if it is left out.
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// PasswordPolicy is what a password must be like.
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

	// Require says how many characters are of a class. All others are letters.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:default={{class: Digit, count: 5}}
	//workshop:markers 5.1a
	// +kubebuilder:validation:MaxItems=2
	Require []Requirement `json:"require,omitzero"`

	// Case says which letters there are.
	// +optional
	// +kubebuilder:default=Mixed
	//workshop:markers 5.1a
	// +kubebuilder:validation:Enum=Mixed;Lower
	Case LetterCase `json:"case,omitempty"`

	// Repeat says whether a character may occur more than once. Forbidding it makes a password weaker, but some systems ask
	// for it.
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
	// Count is how many of them there are, 0 to 128.
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
	// ClassSymbol is the 30 printable characters of ASCII that the generator takes for symbols.
	ClassSymbol CharacterClass = "Symbol"
)

// LetterCase is which letters a password may have.
type LetterCase string

// The choices of letters.
const (
	// CaseMixed allows capital and small letters.
	CaseMixed LetterCase = "Mixed"
	// CaseLower allows small letters only, for systems that don't tell them apart.
	CaseLower LetterCase = "Lower"
)

// Repetition is whether a character may be in a password twice.
type Repetition string

// The choices of repetition.
const (
	// RepeatAllowed lets a character appear any number of times.
	RepeatAllowed Repetition = "Allowed"
	// RepeatForbidden uses each character once at most.
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

// ConditionReady is True while the Secret holds a password as the policy asks.
const ConditionReady = "Ready"

// The reasons of the condition Ready.
const (
	// ReasonGenerated: the Secret holds a password as the policy asks.
	ReasonGenerated = "Generated"
	// ReasonImpossible: no password can meet the policy. Only another spec helps.
	ReasonImpossible = "Impossible"
	// ReasonNameChanged: the spec names another Secret than the one that the Password has. Change
	// the name back, or delete that Secret.
	ReasonNameChanged = "NameChanged"
	// ReasonNameTaken: a Secret of that name is controlled by someone else.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the API server refuses the Secret, because of a quota or a policy of the cluster.
	ReasonRefused = "Refused"
	// ReasonReplacing: a Secret that was the Password's is being removed, and a new one follows.
	ReasonReplacing = "Replacing"
)

// The states of a Password.
const (
	// StateReady: the Secret holds a password as the policy asks.
	StateReady = "Ready"
	// StatePending: a former Secret is being removed, and a new one follows by itself.
	StatePending = "Pending"
	// StateFailed: change the Password, or remove what blocks it.
	StateFailed = "Failed"
)

// PasswordStatus is what the operator found and did.
type PasswordStatus struct {
	// State sums up the conditions in a word.
	// +optional
	State string `json:"state,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SecretName is the Secret that holds the password now.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// LastRotated is when the current password was made.
	// +optional
	LastRotated *metav1.Time `json:"lastRotated,omitempty"`

	// NextRotation is when the current password will be replaced, unless another reason comes
	// first.
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// Fingerprint changes with the password. It reveals nothing about the password.
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

	// Spec is the desired state. Written by users.
	// +optional
	// +kubebuilder:default={}
	Spec PasswordSpec `json:"spec,omitzero"`
	// Status is the observed state. Written by the operator.
	// +optional
	Status PasswordStatus `json:"status,omitzero"`
}

// EffectiveSecretName is the name of the Secret that the Password asks for: the Password's own name if the spec has none.
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
