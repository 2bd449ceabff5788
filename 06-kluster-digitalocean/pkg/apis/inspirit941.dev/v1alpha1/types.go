package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a deleted Kluster until the cloud has no cluster for it, or until the operator may leave the cluster
// behind: with DeletionOrphan, or because the cluster has another owner.
const Finalizer = "inspirit941.dev/cluster"

// TokenFinalizerPrefix is the beginning of the finalizer on the Secret with a Kluster's token. The Kluster's UID
// follows it.
const TokenFinalizerPrefix = "inspirit941.dev/kluster-"

// Annotations of a Kluster. In all of them except PausedAnnotation, the operator records what it must not lose, because
// backups include metadata, but usually not the status. Some of the names follow Crossplane, which also keeps such
// records in annotations:
// https://docs.crossplane.io/latest/managed-resources/managed-resources/
const (
	// PausedAnnotation makes the operator do nothing for the Kluster except write its status, unless the annotation's
	// value is "false".
	PausedAnnotation = "inspirit941.dev/paused"
	// CreatePendingAnnotation is the create intent: the time, in RFC 3339, at which the operator recorded it, before
	// the first request to create the cluster. The operator removes it when it records the cluster's ID. Until then,
	// the cloud may have a cluster whose ID is unknown.
	CreatePendingAnnotation = "inspirit941.dev/external-create-pending"
	// ExternalNameAnnotation is the cluster's ID in the cloud.
	ExternalNameAnnotation = "inspirit941.dev/external-name"
	// ExternalAccountAnnotation is the account that the cluster is created in. The operator records it with the create
	// intent.
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

// TokenSecretType is the type of a Secret whose token the operator may send to the cloud. By choosing this type, the
// Secret's owner allows that; the operator takes no token from a Secret of another type.
const TokenSecretType corev1.SecretType = "inspirit941.dev/cloud-token"

// The types of a Kluster's conditions.
const (
	// ConditionReady is True while the operator finds the cluster running and matching the spec, and its kubeconfig in
	// the Secret. It is Unknown if the operator can't tell, because the Kluster is paused, the cloud has been
	// unavailable for a minute, or the cloud does not show the new cluster yet.
	ConditionReady = "Ready"
	// ConditionProvisioned is True once the cluster has run, until the Kluster is deleted and the cloud has no cluster
	// for it any more. It doesn't say whether the cluster is still running.
	ConditionProvisioned = "Provisioned"
	// ConditionCredentialsReady is True while the token exists, the operator may send it to the cloud, the cloud
	// accepts it, and it belongs to the cluster's account.
	ConditionCredentialsReady = "CredentialsReady"
)

// Reasons of the conditions.
const (
	// ReasonRunning: the cluster is running and matches the spec, and its kubeconfig is in the Secret. As a reason of
	// Provisioned, it means only that the cluster has run.
	ReasonRunning = "Running"
	// ReasonProvisioning: the cloud is creating the cluster, or reports a state that the operator doesn't know. As a
	// reason of Provisioned, it means that the operator has recorded a create intent or an ID, but has not seen the
	// cluster run.
	ReasonProvisioning = "Provisioning"
	// ReasonUpdating: the cloud is changing the node pools to match the spec, or upgrading the cluster.
	ReasonUpdating = "Updating"
	// ReasonDeleting: the cloud is deleting the cluster, or shows none, but its answers are eventually consistent, so
	// the operator still waits.
	ReasonDeleting = "Deleting"
	// ReasonDeleted: the Kluster is deleted, and the cloud has no cluster for it.
	ReasonDeleted = "Deleted"
	// ReasonDegraded: the cloud reports that something is wrong with the cluster.
	ReasonDegraded = "Degraded"
	// ReasonFailed: the cloud could not create the cluster. The only remedy is to delete the Kluster.
	ReasonFailed = "Failed"
	// ReasonLost: the recorded cluster is gone or being deleted, although the Kluster was not deleted.
	ReasonLost = "Lost"
	// ReasonNotOwned: this Kluster's tag is not the cluster's only owner tag, so the operator leaves the cluster alone.
	ReasonNotOwned = "NotOwned"
	// ReasonPaused: because of PausedAnnotation, the operator does nothing for the Kluster except write its status.
	ReasonPaused = "Paused"
	// ReasonOrphaned: the Kluster is deleted, but its cluster stays, if it has one. This reason occurs only in an
	// event.
	ReasonOrphaned = "Orphaned"
	// ReasonNameTaken: the account has a cluster named spec.name, and the operator finds none with this Kluster's tag.
	// For a moment, it may be the Kluster's own new cluster, which the cloud's list does not show yet.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the cloud refuses a request as invalid or not allowed, usually because of what the spec asks for.
	ReasonRefused = "Refused"
	// ReasonUnavailable: for a minute, the cloud has not responded, has failed, has asked the operator to wait, or has not
	// shown something, such as a node pool. For a new cluster that the cloud does not show yet, the operator reports this
	// reason immediately.
	ReasonUnavailable = "Unavailable"
	// ReasonTokenMissing: the Secret or the key in it is missing, the key holds no token, or the Secret is being
	// deleted and doesn't have this Kluster's finalizer.
	ReasonTokenMissing = "TokenMissing"
	// ReasonTokenNotAllowed: the Secret does not have the type TokenSecretType, so the operator doesn't use it.
	ReasonTokenNotAllowed = "TokenNotAllowed"
	// ReasonTokenRejected: the cloud does not accept the token, or the token lacks a permission.
	ReasonTokenRejected = "TokenRejected"
	// ReasonAnotherAccount: the token belongs to an account other than the one in which the cluster was created.
	ReasonAnotherAccount = "AnotherAccount"
	// ReasonTokenAccepted: the cloud accepts the token.
	ReasonTokenAccepted = "TokenAccepted"
	// ReasonSecretRefused: the API server refuses the kubeconfig's Secret, or a change to the finalizers of the token's
	// Secret, for example because of a quota or a policy.
	ReasonSecretRefused = "SecretRefused"
	// ReasonSecretTaken: a Secret with the name of the kubeconfig's Secret exists, and doesn't belong to this Kluster.
	ReasonSecretTaken = "SecretTaken"
)

// Kluster asks a cloud for a managed Kubernetes cluster.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=klusters,singular=kluster,categories=workshop
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 242",optionalOldSelf=true,message="the name must not be longer than 242 characters: that of the kubeconfig's Secret is 11 longer, and can have at most 253"
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
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state. Written by users.
	// +required
	Spec KlusterSpec `json:"spec"`
	// Status is the observed state. Written by the operator.
	// +optional
	Status KlusterStatus `json:"status,omitzero"`
}

// KlusterSpec describes the cluster that a Kluster asks for, and what becomes of it when the Kluster is deleted.
type KlusterSpec struct {
	// Name is the cluster's name in the cloud, unique in the account. It can't be changed.
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
	// A later version upgrades the cluster; a downgrade is impossible.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^(latest|1\.[0-9]+(\.[0-9]+-do\.[0-9]+)?)$`
	//workshop:markers 6.2
	// +kubebuilder:validation:XValidation:rule="self == 'latest' || oldSelf == 'latest' || int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",message="spec.version can't go back to an earlier minor version"
	Version string `json:"version"`

	// TokenSecret names the Secret with the token for the cloud's API. Its type must be inspirit941.dev/cloud-token.
	// +required
	TokenSecret TokenSecret `json:"tokenSecret"`

	// DeletionPolicy decides what happens to the cluster when the Kluster is deleted: Delete deletes the cluster,
	// Orphan keeps it.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// NodePools are the cluster's groups of machines. There must be at least one, and their names must differ.
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

	// Count is the number of machines. With autoscale, it is only the initial number in a new pool.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Count int32 `json:"count,omitempty"`

	// Labels are applied to the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Taints keep away pods that don't tolerate them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Taints []Taint `json:"taints,omitempty"`

	// Autoscale lets the cloud choose the number of machines.
	// +optional
	Autoscale *Autoscale `json:"autoscale,omitempty"`
}

// Taint is a taint on the nodes of a pool.
type Taint struct {
	// Key is the taint's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// Value is the taint's value. It may be empty.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// Effect is what happens to pods that don't tolerate the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// Autoscale limits the number of machines in a pool.
//
// +kubebuilder:validation:XValidation:rule="self.minNodes <= self.maxNodes",message="minNodes must not be more than maxNodes"
type Autoscale struct {
	// MinNodes is the minimum number of machines.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinNodes int32 `json:"minNodes"`
	// MaxNodes is the maximum number of machines.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxNodes int32 `json:"maxNodes"`
}

// KlusterStatus is the observed state of a Kluster and of its cluster.
type KlusterStatus struct {
	// KlusterID is the cluster's ID in the cloud, a copy of the annotation inspirit941.dev/external-name.
	// +optional
	KlusterID string `json:"klusterID,omitempty"`

	// Account is the account that the cluster is created in, copied once from the annotation
	// inspirit941.dev/external-account. The operator uses no token of another account.
	// +optional
	Account string `json:"account,omitempty"`

	// TokenSecret is the Secret with the Kluster's finalizer. The Secret can't disappear while the Kluster needs it.
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

	// NodePools are the cluster's node pools.
	// +optional
	// +listType=map
	// +listMapKey=name
	NodePools []NodePoolStatus `json:"nodePools,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ReadyGeneration is the metadata.generation that the cluster has matched, with all machines running. The operator
	// removes it when it has to change the cluster again.
	// +optional
	ReadyGeneration int64 `json:"readyGeneration,omitempty"`

	// Conditions holds the conditions Ready, Provisioned and CredentialsReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodePoolStatus is the state of a node pool in the cloud.
type NodePoolStatus struct {
	// Name is the pool's name.
	// +required
	Name string `json:"name"`
	// ID is the pool's ID in the cloud.
	// +required
	ID string `json:"id"`
	// Size is the slug of the machines' size.
	// +required
	Size string `json:"size"`
	// Count is the number of machines that the pool should have.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Running is the number of machines that are running.
	// +optional
	Running int32 `json:"running,omitempty"`
}

// KlusterList is a list of Klusters.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type KlusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Klusters.
	Items []Kluster `json:"items"`
}
