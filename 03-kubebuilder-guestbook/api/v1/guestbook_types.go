package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ConditionReady is the type of the only condition that the controller sets. It is True while the ConfigMap
// exists, neither the Deployment nor the Service is blocked, exactly the desired number of pods exist, and all of them
// are ready and were created from the current spec and settings. Pods that are terminating or have finished don't
// count.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonAvailable goes with True: all pods serve the page.
	ReasonAvailable = "Available"
	// ReasonProgressing goes with False: pods are being created, replaced or removed, or are not ready, or the Deployment
	// or the Service is being replaced.
	ReasonProgressing = "Progressing"
	// ReasonStalled goes with False: the Deployment reports that its rollout makes no progress, or that its pods can't be
	// created or deleted.
	ReasonStalled = "Stalled"
	// ReasonConfigMapNotFound goes with False: the ConfigMap that spec.configMapName
	// names does not exist. The controller leaves running pods as they are.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonDeploymentTaken goes with False: there is a Deployment with the Guestbook's name that neither the
	// Guestbook nor a deleted Guestbook of the same name controls.
	ReasonDeploymentTaken = "DeploymentTaken"
	// ReasonServiceTaken goes with False: there is a Service with the Guestbook's name that neither the Guestbook nor
	// a deleted Guestbook of the same name controls.
	ReasonServiceTaken = "ServiceTaken"
	// ReasonRefused goes with False: the API server refuses the Deployment or the Service, for example because of a quota
	// or a policy.
	ReasonRefused = "Refused"
)

// Alias is what visitors sign a Guestbook with.
//
// +kubebuilder:validation:Enum=Phone;Address;Name
//
//workshop:markers 3.3b +kubebuilder:validation
type Alias string

// The possible aliases.
const (
	AliasPhone   Alias = "Phone"
	AliasAddress Alias = "Address"
	AliasName    Alias = "Name"
)

// GuestbookSpec describes the desired page.
type GuestbookSpec struct {
	// Size is the number of pods that serve the page, 1 to 10.
	// +optional
	//workshop:step 3.3a
	//workshop:markers 3.3b
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Size int32 `json:"size,omitempty"`

	// ConfigMapName is the name of the ConfigMap with the page's settings, in the
	// Guestbook's namespace. Each of its keys that ends in ".template" is rendered
	// when a pod starts, so a change to the content replaces the pods.
	// +required
	//workshop:step 3.3a
	//workshop:markers 3.3b
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ConfigMapName string `json:"configMapName"`

	// Alias is what visitors sign with; the page's templates find it in ${GUESTBOOK_ALIAS}.
	// +optional
	//workshop:step 3.3a
	//workshop:markers 3.3b
	// +kubebuilder:default=Name
	Alias Alias `json:"alias,omitempty"`
}

// GuestbookStatus is the state that the controller observed.
type GuestbookStatus struct {
	// Active is the name of the pod that has been ready for longest.
	// +optional
	//workshop:step 3.3a
	Active string `json:"active,omitempty"`

	// Standby lists the names of the other ready pods; the first is the next to become active.
	// +optional
	//workshop:step 3.3a
	// +listType=atomic
	Standby []string `json:"standby,omitempty"`

	// Replicas is the number of pods that exist, except those that are terminating or have finished.
	// Autoscalers read it through the scale subresource.
	// +optional
	//workshop:step 3.3a
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of pods that are ready: the active one and those on standby.
	// +optional
	//workshop:step 3.3a
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Selector finds the Guestbook's pods. Autoscalers read it through the scale subresource.
	// +optional
	//workshop:step 3.3a
	Selector string `json:"selector,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	//workshop:step 3.3a
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Guestbook asks for a page that visitors can sign, served by some pods.
//
// Its Deployment and its Service have the Guestbook's name. The name of a Service has at
// most 63 characters and, before Kubernetes 1.36, must begin with a letter.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=workshop
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=.spec.configMapName
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Alias",type=string,priority=1,JSONPath=`.spec.alias`
// +kubebuilder:printcolumn:name="Settings",type=string,priority=1,JSONPath=`.spec.configMapName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and '-', and begin with a letter: it is also the name of a Service"
//
//workshop:markers 3.3b +kubebuilder:validation
//workshop:markers 3.3c +kubebuilder:subresource:scale +kubebuilder:selectablefield +kubebuilder:printcolumn
type Guestbook struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state. Written by users.
	// +required
	Spec GuestbookSpec `json:"spec"`
	// Status is the observed state. Written by the controller.
	// +optional
	Status GuestbookStatus `json:"status,omitzero"`
}

// GuestbookList is a list of Guestbooks.
//
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Guestbooks.
	Items []Guestbook `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Guestbook{}, &GuestbookList{})
		return nil
	})
}
