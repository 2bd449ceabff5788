package rollout

import "fmt"

// object has what the rollout looks at of a Deployment, a ReplicaSet or a pod, by the names of Kubernetes' API.
type object struct {
	Metadata struct {
		Name, UID         string
		Generation        int64
		DeletionTimestamp string
		Annotations       map[string]string
		OwnerReferences   []struct {
			UID        string
			Controller bool
		}
	}
	Spec struct {
		// Replicas is filled in by the API server where it was left out.
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

// controller is the UID of the object that made this one, or "".
func (o object) controller() string {
	for _, owner := range o.Metadata.OwnerReferences {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// revision tells which ReplicaSet belongs to a Deployment's current template.
func (o object) revision() string { return o.Metadata.Annotations["deployment.kubernetes.io/revision"] }

// condition is the one of that type, or an empty one.
func (s status) condition(wanted string) condition {
	for _, each := range s.Conditions {
		if each.Type == wanted {
			return each
		}
	}
	return condition{}
}

// exit says how the container ended last.
func (s containerStatus) exit() string {
	ended := s.LastState.Terminated
	if ended == nil {
		return ""
	}
	return fmt.Sprintf(" (exit status %d, %s)", ended.ExitCode, ended.Reason)
}
