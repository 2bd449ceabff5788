package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a Kluster that is being deleted until the cloud says that its cluster is gone.
const Finalizer = "inspirit941.dev/cluster"

// TokenFinalizerPrefix and the Kluster's UID make the finalizer on the Secret with its token.
const TokenFinalizerPrefix = "inspirit941.dev/kluster-"

// Annotations of a Kluster. What the operator must not lose is in the metadata, which backups keep. The names are those of
// Crossplane, whose managed resources have the same problem: https://docs.crossplane.io/latest/managed-resources/managed-resources/
const (
	// PausedAnnotation makes the operator leave the Kluster and its cluster alone, unless its value is "false".
	PausedAnnotation = "inspirit941.dev/paused"
	// CreatePendingAnnotation is the create intent: the time, in RFC 3339, shortly before the first request to create the
	// cluster. It is removed when the cluster's ID is recorded: until then the cloud may have a cluster of unknown ID.
	CreatePendingAnnotation = "inspirit941.dev/external-create-pending"
	// ExternalNameAnnotation is the cluster's ID in the cloud.
	ExternalNameAnnotation = "inspirit941.dev/external-name"
	// ExternalAccountAnnotation is the account that the cluster is created in. It is recorded with the create intent.
	ExternalAccountAnnotation = "inspirit941.dev/external-account"
)

// DeletionPolicy decides what happens to the cluster when its Kluster is deleted.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete deletes the cluster first, and then the Kluster.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan deletes the Kluster, and keeps the cluster.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// TokenSecretType is the type of a Secret whose token may be sent to the cloud. The Secret's owner allows that
// by choosing this type; the operator uses no Secret of another type.
const TokenSecretType corev1.SecretType = "inspirit941.dev/cloud-token"

// The types of a Kluster's conditions.
const (
	// ConditionReady is True while the cluster runs as the spec asks, and its kubeconfig is in the Secret.
	ConditionReady = "Ready"
	// ConditionProvisioned is True once the cluster has run. It says nothing about whether it still does.
	ConditionProvisioned = "Provisioned"
	// ConditionCredentialsReady is True while the token is there and the cloud accepts it.
	ConditionCredentialsReady = "CredentialsReady"
)

// Reasons of the conditions.
const (
	// ReasonRunning: the cluster is as the spec asks.
	ReasonRunning = "Running"
	// ReasonProvisioning: the cloud is making the cluster.
	ReasonProvisioning = "Provisioning"
	// ReasonUpdating: the cloud is changing node pools or version to match the spec.
	ReasonUpdating = "Updating"
	// ReasonDeleting: the cloud is removing the cluster.
	ReasonDeleting = "Deleting"
	// ReasonDeleted: the cloud has no cluster of this deleted Kluster any more.
	ReasonDeleted = "Deleted"
	// ReasonDegraded: the cloud says that something is wrong with the cluster.
	ReasonDegraded = "Degraded"
	// ReasonFailed: the cloud says that the cluster could not be made. Only deleting the Kluster helps.
	ReasonFailed = "Failed"
	// ReasonLost: the cluster that was recorded is gone, though the Kluster was not deleted.
	ReasonLost = "Lost"
	// ReasonNotOwned: this Kluster's tag is not the cluster's only owner tag, so the operator leaves the cluster alone.
	ReasonNotOwned = "NotOwned"
	// ReasonPaused: an annotation makes the operator leave the Kluster and its cluster alone.
	ReasonPaused = "Paused"
	// ReasonOrphaned: the Kluster is deleted, and its cluster stays. Used in an event only.
	ReasonOrphaned = "Orphaned"
	// ReasonNameTaken: the account has a cluster of that name without this Kluster's tag.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the cloud refuses what the spec asks.
	ReasonRefused = "Refused"
	// ReasonUnavailable: the cloud does not answer, fails, asks to wait, or does not show a new cluster yet.
	ReasonUnavailable = "Unavailable"
	// ReasonTokenMissing: the Secret, or the key in it, is missing, or holds no token.
	ReasonTokenMissing = "TokenMissing"
	// ReasonTokenNotAllowed: the Secret is not of the type TokenSecretType, so it is not used.
	ReasonTokenNotAllowed = "TokenNotAllowed"
	// ReasonTokenRejected: the cloud does not accept the token, or it may not do what is needed.
	ReasonTokenRejected = "TokenRejected"
	// ReasonAnotherAccount: the token belongs to another account than the one that the cluster is created in.
	ReasonAnotherAccount = "AnotherAccount"
	// ReasonTokenAccepted: the cloud accepts the token.
	ReasonTokenAccepted = "TokenAccepted"
	// ReasonSecretRefused: the API server refuses the Secret of the kubeconfig, or the finalizer on that of the
	// token, because of a quota or a policy.
	ReasonSecretRefused = "SecretRefused"
	// ReasonSecretTaken: a Secret with the name of the kubeconfig's exists, and is not this Kluster's.
	ReasonSecretTaken = "SecretTaken"
)

// Kluster asks a cloud for a managed Kubernetes cluster.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=klusters,singular=kluster,categories=workshop
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 242",optionalOldSelf=true,message="the name must not be longer than 242 characters: that of the kubeconfig's Secret is 11 longer, and ends at 253"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.klusterID`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Version",type=string,priority=1,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Kluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state. Written by users.
	// +required
	Spec KlusterSpec `json:"spec"`
	// Status is the observed state. Written by the operator.
	// +optional
	Status KlusterStatus `json:"status,omitempty"`
}

// KlusterSpec is the cluster that a Kluster asks for.
type KlusterSpec struct {
	// Name is the cluster's name in the cloud, unique in the account. DigitalOcean can't change it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	//workshop:markers 6.2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.name can't be changed: make another Kluster"
	Name string `json:"name"`

	// Region is the slug of the data centre, such as "fra1". DigitalOcean can't change it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	//workshop:markers 6.2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region can't be changed: make another Kluster"
	Region string `json:"region"`

	// Version is the version of Kubernetes: a slug such as "1.36.1-do.0", a minor version such as "1.36", or "latest".
	// A later one upgrades the cluster; nothing brings an earlier one back.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^(latest|1\.[0-9]+(\.[0-9]+-do\.[0-9]+)?)$`
	//workshop:markers 6.2
	// +kubebuilder:validation:XValidation:rule="self == 'latest' || oldSelf == 'latest' || int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",message="spec.version can't go back to an earlier minor version"
	Version string `json:"version"`

	// TokenSecret names the Secret with the token for the cloud's API. Its type must be inspirit941.dev/cloud-token.
	// +required
	TokenSecret TokenSecret `json:"tokenSecret"`

	// DeletionPolicy decides what happens to the cluster when the Kluster is deleted: Delete deletes it, Orphan keeps it.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// NodePools are the groups of machines, one or more, by their names.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	//workshop:markers 6.2
	// +listType=map
	// +listMapKey=name
	NodePools []NodePool `json:"nodePools"`
}

// TokenSecret names a Secret in the Kluster's own namespace.
type TokenSecret struct {
	// Name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the Secret's data.
	// +optional
	// +kubebuilder:default=token
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// NodePool is a group of machines of one size.
//
// +kubebuilder:validation:XValidation:rule="has(self.autoscale) || has(self.count)",message="a node pool needs a count, unless it has autoscale"
type NodePool struct {
	// Name is the pool's name, unique in the Kluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=55
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Size is the slug of the machines' size, such as "s-2vcpu-4gb". DigitalOcean can't change it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	//workshop:markers 6.2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the size of a node pool can't be changed: add another pool, and remove this one"
	Size string `json:"size"`

	// Count is the number of machines. With autoscale it is the initial number, which the cloud's autoscaler changes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Count int32 `json:"count,omitempty"`

	// Labels are put on the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Taints keep pods away from the nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Taints []Taint `json:"taints,omitempty"`

	// Autoscale lets the cloud choose the number of machines.
	// +optional
	Autoscale *Autoscale `json:"autoscale,omitempty"`
}

// Taint is one that the nodes of a pool get.
type Taint struct {
	// Key is the taint's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// Value may be empty.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// Effect is what happens to pods that don't tolerate the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// Autoscale are the limits of a pool's number of machines.
//
// +kubebuilder:validation:XValidation:rule="self.minNodes <= self.maxNodes",message="minNodes must not be more than maxNodes"
type Autoscale struct {
	// MinNodes is the least number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinNodes int32 `json:"minNodes"`
	// MaxNodes is the greatest number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxNodes int32 `json:"maxNodes"`
}

// KlusterStatus is what the operator found in the cloud.
type KlusterStatus struct {
	// KlusterID is the cluster's ID in the cloud, a copy of the annotation inspirit941.dev/external-name.
	// +optional
	KlusterID string `json:"klusterID,omitempty"`

	// Account is the account that the cluster is created in, a copy of the annotation inspirit941.dev/external-account.
	// The operator uses no token of another account.
	// +optional
	Account string `json:"account,omitempty"`

	// TokenSecret is the Secret with the Kluster's finalizer: a deletion of the Secret waits for that of the cluster.
	// +optional
	TokenSecret string `json:"tokenSecret,omitempty"`

	// Progress is the cluster's state as the cloud reports it, such as "provisioning" or "running".
	// +optional
	Progress string `json:"progress,omitempty"`

	// Endpoint is the URL of the cluster's API server.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Version is the slug of the version that the cluster runs.
	// +optional
	Version string `json:"version,omitempty"`

	// KubeconfigSecret is the Secret that holds the kubeconfig, under the key "kubeconfig".
	// +optional
	KubeconfigSecret string `json:"kubeconfigSecret,omitempty"`

	// NodePools are the cluster's pools, by their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	NodePools []NodePoolStatus `json:"nodePools,omitempty"`

	// ObservedGeneration is the metadata.generation that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the conditions Ready, Provisioned and CredentialsReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodePoolStatus is one pool as the cloud has it.
type NodePoolStatus struct {
	// Name is the pool's name.
	// +required
	Name string `json:"name"`
	// ID is the pool's id in the cloud.
	// +required
	ID string `json:"id"`
	// Size is the slug of the machines' size.
	// +required
	Size string `json:"size"`
	// Count is how many machines the pool should have.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Running is how many of them run.
	// +optional
	Running int32 `json:"running,omitempty"`
}

// KlusterList is a list of Klusters.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type KlusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Klusters.
	Items []Kluster `json:"items"`
}
