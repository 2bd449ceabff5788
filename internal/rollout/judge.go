package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// sight is the state of a Deployment at one moment.
type sight struct {
	// done means that all pods are new and ready.
	done bool
	// progress is the line to print about the rollout.
	progress string
	// trouble says why a pod can't be created or can't start, or that a container keeps exiting, and in some cases what to
	// do. It is "" if there is no such problem.
	trouble string
	// waiting says what a pod waits for and may still get, or "".
	waiting string
	// crashed is the container that keeps exiting, if that is the problem.
	crashed container
}

type container struct{ pod, name string }

// pullReasons lists reasons in the status of a container whose image the kubelet can't get.
var pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"}

// createReasons lists reasons in the status of a container that can't be created or started.
var createReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}

// currentPods returns the pods of the current template that are not being deleted. Pods of earlier templates don't
// count: perhaps the template was changed because they can't start.
func currentPods(deployment object, replicaSets, pods []object) []object {
	var current string
	for _, each := range replicaSets {
		if each.controller() == deployment.Metadata.UID && each.revision() == deployment.revision() {
			current = each.Metadata.UID
		}
	}
	return slices.DeleteFunc(pods, func(pod object) bool {
		return current == "" || pod.controller() != current || pod.Metadata.DeletionTimestamp != ""
	})
}

// judge returns the state of the rollout. pods are the pods of the Deployment's current template.
func judge(deployment object, pods []object) sight {
	name, wanted, status := deployment.Metadata.Name, deployment.Spec.Replicas, deployment.Status
	if status.ObservedGeneration < deployment.Metadata.Generation {
		return sight{progress: fmt.Sprintf("deployment %s: waiting for its controller", name)}
	}
	seen := sight{
		done:     status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted,
		progress: fmt.Sprintf("deployment %s: %d of %d pods are new and ready", name, min(status.UpdatedReplicas, status.AvailableReplicas), wanted),
	}
	if refused := status.condition("ReplicaFailure"); refused.Status == "True" {
		seen.trouble = fmt.Sprintf("the cluster refuses the pods of deployment %s: %s", name, firstLine(refused.Message))
	}
	for _, pod := range pods {
		judgePod(&seen, pod)
	}
	return seen
}

func judgePod(seen *sight, pod object) {
	name := pod.Metadata.Name
	if scheduled := pod.Status.condition("PodScheduled"); scheduled.Status == "False" {
		seen.waiting = fmt.Sprintf("no node can run pod %s: %s", name, firstLine(scheduled.Message))
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		switch {
		case status.State.Running != nil && !status.Ready && seen.waiting == "":
			seen.waiting = fmt.Sprintf("container %s of pod %s is running, but not ready", status.Name, name)
		case waiting == nil || seen.trouble != "": // report only the first problem
		case waiting.Reason == "InvalidImageName":
			seen.trouble = fmt.Sprintf("%q is not a valid image name: choose another IMG", status.Image)
		case slices.Contains(pullReasons, waiting.Reason):
			seen.trouble = fmt.Sprintf("node %s can't get the image %s (%s): `make stage-N kind-load IMG=%s` loads it from docker into a kind cluster, `docker-push` pushes it to a registry that the node can reach",
				pod.Spec.NodeName, status.Image, waiting.Reason, status.Image)
		case slices.Contains(createReasons, waiting.Reason):
			seen.trouble = fmt.Sprintf("container %s of pod %s can't be created or started (%s): %s", status.Name, name, waiting.Reason, firstLine(waiting.Message))
		case waiting.Reason == "CrashLoopBackOff":
			seen.trouble = fmt.Sprintf("container %s of pod %s keeps exiting%s", status.Name, name, status.exit())
			seen.crashed = container{pod: name, name: status.Name}
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
