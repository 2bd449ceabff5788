package rollout

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// sight is what one look at a Deployment found.
type sight struct {
	// done tells that all pods are new and ready.
	done bool
	// progress is a line for people.
	progress string
	// trouble is why a pod can't start and what to do, or "".
	trouble string
	// waiting is what a pod waits for that may still come, or "".
	waiting string
	// crashed is the container that trouble is about, if it has run.
	crashed container
}

type container struct{ pod, name string }

// pullReasons are kubelet's for an image that it can't get.
var pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"}

// createReasons are kubelet's for a container that it can't make from its image.
var createReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}

// judge says how far the rollout is. pods are those of the Deployment's current template.
func judge(deployment *appsv1.Deployment, pods []corev1.Pod) sight {
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	status := deployment.Status
	if status.ObservedGeneration < deployment.Generation {
		return sight{progress: fmt.Sprintf("deployment %s: waiting for its controller", deployment.Name)}
	}
	ready := min(status.UpdatedReplicas, status.AvailableReplicas)
	seen := sight{
		done:     status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted,
		progress: fmt.Sprintf("deployment %s: %d of %d pods are new and ready", deployment.Name, ready, wanted),
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			seen.trouble = fmt.Sprintf("the cluster refuses the pods of deployment %s: %s", deployment.Name, firstLine(condition.Message))
		}
	}
	for _, pod := range pods {
		judgePod(&seen, pod)
	}
	return seen
}

func judgePod(seen *sight, pod corev1.Pod) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			seen.waiting = fmt.Sprintf("no node takes pod %s: %s", pod.Name, firstLine(condition.Message))
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		switch {
		case waiting == nil && status.State.Running != nil && !status.Ready && seen.waiting == "":
			seen.waiting = fmt.Sprintf("container %s of pod %s runs, and is not ready", status.Name, pod.Name)
		case waiting == nil:
		case slices.Contains(pullReasons, waiting.Reason):
			seen.trouble = missingImage(pod, status.Image, waiting)
		case slices.Contains(createReasons, waiting.Reason):
			seen.trouble = fmt.Sprintf("container %s of pod %s can't be made (%s): %s", status.Name, pod.Name, waiting.Reason, firstLine(waiting.Message))
		case waiting.Reason == "CrashLoopBackOff":
			seen.trouble = fmt.Sprintf("container %s of pod %s ends again and again%s", status.Name, pod.Name, exitOf(status))
			seen.crashed = container{pod: pod.Name, name: status.Name}
		}
	}
}

func missingImage(pod corev1.Pod, image string, waiting *corev1.ContainerStateWaiting) string {
	if waiting.Reason == "InvalidImageName" {
		return fmt.Sprintf("%q is no name of an image: choose another IMG", image)
	}
	return fmt.Sprintf("node %s can't get the image %s (%s): `make stage-N kind-load IMG=%s` takes it from docker into a kind cluster, `docker-push` to a registry that the node reaches",
		pod.Spec.NodeName, image, waiting.Reason, image)
}

func exitOf(status corev1.ContainerStatus) string {
	ended := status.LastTerminationState.Terminated
	if ended == nil {
		return ""
	}
	return fmt.Sprintf(" (exit status %d, %s)", ended.ExitCode, ended.Reason)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
