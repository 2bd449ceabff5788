package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Finalizer keeps a deleted Memcached until its pods have terminated: when
// `kubectl delete` returns, no client can reach the cache any more. With
// --cascade=orphan, the Memcached doesn't wait, and the pods stay.
const Finalizer = "cache.example.com/finalizer"

// Types of the conditions. Once a Memcached is being deleted, only ConditionDegraded changes.
const (
	// ConditionAvailable is True while enough pods are ready. As in a rolling update, a quarter of the desired pods,
	// rounded down, may be missing. It is False while someone else's object has the name of a child: if that object is
	// a Service, clients find it instead. But if several children are blocked, the conditions describe only the first
	// one, in the order Deployment, Service, PodDisruptionBudget.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while pods are being created, replaced or removed, or
	// are not ready, or a child is being replaced. It is False while ConditionDegraded is True, unless
	// ConditionDegraded has become True during the deletion.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while there is a problem that the operator can't fix by itself: the name of a child is
	// taken, the API server refuses a child or a deletion, a pod can't run, or the Deployment is stalled (see
	// ReasonStalled). The last two don't count while a child is being replaced.
	ConditionDegraded = "Degraded"
)

// Reasons of the conditions.
const (
	// ReasonEnoughPods: enough pods are ready.
	ReasonEnoughPods = "EnoughPods"
	// ReasonTooFewPods: too few pods are ready.
	ReasonTooFewPods = "TooFewPods"
	// ReasonRollingOut: pods are being created, replaced or removed, or are not ready, or a child is being replaced.
	ReasonRollingOut = "RollingOut"
	// ReasonRolledOut: exactly the desired number of pods exist, and all of them are ready and match the spec.
	// Pods that are terminating or have finished don't count.
	ReasonRolledOut = "RolledOut"
	// ReasonNameTaken: an object has the name of a child, but neither the Memcached nor a deleted Memcached of the same
	// name controls the object.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the API server refuses a child or a deletion, for example because of a quota or a policy.
	ReasonRefused = "Refused"
	// ReasonStalled: the Deployment reports that its rollout makes no progress, or that its pods can't be created or
	// deleted.
	ReasonStalled = "Stalled"
	// ReasonPodsFailing: a pod of the current revision has been unschedulable for five minutes; or its container can't
	// start, or isn't ready and has exited several times, most recently within the last ten minutes.
	ReasonPodsFailing = "PodsFailing"
	// ReasonAsExpected: nothing is wrong.
	ReasonAsExpected = "AsExpected"
)

// MemcachedSpec describes the desired cache.
type MemcachedSpec struct {
	// Size is the number of pods, 1 to 5. Clients spread their keys over the pods,
	// so each change to the size makes the cache lose some of its keys.
	// +required
	//workshop:step 4.4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Size int32 `json:"size"`

	// ContainerPort is the port that memcached listens on, 1024 to 65535: lower ports may be reserved for root.
	// +optional
	//workshop:step 4.4
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	ContainerPort int32 `json:"containerPort,omitempty"`

	// MemoryMegabytes is how many MiB of memory each pod may fill with items, 8 to 65536.
	// The pod may use a quarter more plus 32 MiB, for connections and the program itself.
	// +optional
	//workshop:step 4.4
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=65536
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory in MiB",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MemoryMegabytes int32 `json:"memoryMegabytes,omitempty"`

	// Image is the container image, with a tag, a digest, both or neither. The operator has a default.
	// +optional
	//workshop:step 4.4
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Image string `json:"image,omitempty"`

	// MaxConnections is how many open connections each pod allows, 16 to 16384. The default is memcached's own, 1024.
	// +optional
	//workshop:step 4.14a
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=16384
	//workshop:markers 4.18
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Connections per pod",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// MemcachedStatus is the state that the operator observed.
type MemcachedStatus struct {
	// Nodes are the names of the ready pods, sorted.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Nodes"
	Nodes []string `json:"nodes,omitempty"`

	// Replicas is the number of pods that exist, except those that are terminating or have finished.
	// Autoscalers read it through the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of pods that are ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Selector matches the pods. Autoscalers read it through the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector",xDescriptors={"urn:alm:descriptor:text"}
	Selector string `json:"selector,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the conditions Available, Progressing and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached asks for pods that run memcached, and for a Service whose DNS name
// resolves to all ready ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=workshop
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and '-', and begin with a letter: it is also the name of a Service"
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",resources={{Deployment,v1,""},{Service,v1,""},{PodDisruptionBudget,v1,""},{Pod,v1,""}}
type Memcached struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state, written by users.
	// +required
	Spec MemcachedSpec `json:"spec"`
	// Status is the observed state, written by the operator.
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Memcacheds.
	Items []Memcached `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Memcached{}, &MemcachedList{})
		return nil
	})
}
