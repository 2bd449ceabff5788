package rollout

import "fmt"

// object has the fields that this package reads from a Deployment, a ReplicaSet or a pod, named as in the Kubernetes
// API.
type object struct {
	Metadata struct {
		Namespace, Name   string
		UID               string
		Generation        int64
		DeletionTimestamp string
		Annotations       map[string]string
		OwnerReferences   []struct {
			UID        string
			Controller bool
		}
	}
	Spec struct {
		// Replicas is never missing from a Deployment: the API server defaults it.
		Replicas int
		NodeName string
	}
	Status status
}

type status struct {
	ObservedGeneration                           int64
	Replicas, UpdatedReplicas, AvailableReplicas int
	Conditions                                   []condition
	InitContainerStatuses, ContainerStatuses     []containerStatus
}

type condition struct{ Type, Status, Message string }

type containerStatus struct {
	Name, Image string
	Ready       bool
	State       struct {
		Waiting *struct{ Reason, Message string }
		Running *struct{}
	}
	LastState struct {
		Terminated *struct {
			ExitCode int
			Reason   string
		}
	}
}

// controller returns the UID of the object that controls this one, or "".
func (o object) controller() string {
	for _, owner := range o.Metadata.OwnerReferences {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// revision returns the revision of a Deployment or ReplicaSet. A Deployment and the ReplicaSet of its current template
// have the same revision.
func (o object) revision() string { return o.Metadata.Annotations["deployment.kubernetes.io/revision"] }

// condition returns the condition of this type, or an empty one.
func (s status) condition(wanted string) condition {
	for _, each := range s.Conditions {
		if each.Type == wanted {
			return each
		}
	}
	return condition{}
}

// exit describes how the container last ended, or returns "" if it has not ended.
func (s containerStatus) exit() string {
	ended := s.LastState.Terminated
	if ended == nil {
		return ""
	}
	return fmt.Sprintf(" (exit status %d, %s)", ended.ExitCode, ended.Reason)
}
