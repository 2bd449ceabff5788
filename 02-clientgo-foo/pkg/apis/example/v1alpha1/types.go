package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is the type of the only condition that the controller sets. It is True while the Foo can have its
// Deployment, and exactly the desired number of replicas exist, all of them up to date and available. But it is False
// while the API server refuses to delete a Deployment with an earlier name.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonDeploymentAvailable goes with True: the Deployment has rolled out.
	ReasonDeploymentAvailable = "DeploymentAvailable"
	// ReasonDeploymentProgressing goes with False: the Deployment is rolling out, some of its replicas are
	// unavailable, or it is being removed, and a new one follows.
	ReasonDeploymentProgressing = "DeploymentProgressing"
	// ReasonDeploymentStalled goes with False: the Deployment reports that it makes no progress, or that pods
	// can't be created or deleted.
	ReasonDeploymentStalled = "DeploymentStalled"
	// ReasonDeploymentRefused goes with False: the API server refuses to create or patch the Deployment, or to delete one
	// with an earlier name, for example because of a quota or a policy.
	ReasonDeploymentRefused = "DeploymentRefused"
	// ReasonErrResourceExists goes with False: a Deployment with the name in spec.deploymentName exists, but neither this
	// Foo nor a deleted Foo of the same name controls it; or this Foo controls it, but its selector isn't the Foo's.
	ReasonErrResourceExists = "ErrResourceExists"
)

// Foo asks for a Deployment.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=foos,singular=foo,categories=workshop
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state. Written by users.
	// +required
	Spec FooSpec `json:"spec"`
	// Status is the observed state. Written by the controller.
	// +optional
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec describes the Deployment that a Foo asks for.
type FooSpec struct {
	// DeploymentName is the name of the Deployment, in the Foo's namespace. After
	// a change the controller makes the new Deployment first, and removes the old one
	// when the new one has rolled out.
	// +required
	//workshop:step 2.3
	//workshop:markers 2.5
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	DeploymentName string `json:"deploymentName"`

	// Replicas is the number of pods, 1 to 10.
	// +optional
	//workshop:step 2.3
	//workshop:markers 2.5
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Replicas int32 `json:"replicas,omitempty"`

	// Image is the container image. Its user must be a number other than 0 (root).
	// +optional
	//workshop:step 2.3
	//workshop:markers 2.5
	// +kubebuilder:default="nginxinc/nginx-unprivileged:1.29.1"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`

	// Message is the value of the container's environment variable MESSAGE.
	// Without a message, the controller leaves that variable out, or removes it.
	// As in any variable, Kubernetes replaces $(NAME) with the value of the
	// variable NAME if the container defines that one earlier.
	// +optional
	//workshop:step 2.15a
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// FooStatus is the state that the controller observed.
type FooStatus struct {
	// Replicas is the number of the Deployment's pods that exist, available or not; 0 while the Foo can't have it.
	// Autoscalers read it through the scale subresource.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// AvailableReplicas is the number of the Deployment's pods that are available; 0 while the Foo can't have it.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// Selector finds the Deployment's pods. Autoscalers read it through the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FooList is a list of Foos.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Foos.
	Items []Foo `json:"items"`
}
