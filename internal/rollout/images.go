package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/kube"
)

// MissingImages returns a line for each image that a node of the cluster can't get at the moment, with the reason.
func MissingImages(ctx context.Context, get kube.Get) ([]string, error) {
	var pods struct{ Items []object }
	if err := get.JSON(ctx, "/api/v1/pods", &pods); err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	var missing, images []string
	for _, pod := range pods.Items {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			waiting := status.State.Waiting
			if waiting == nil || !slices.Contains(pullReasons, waiting.Reason) || slices.Contains(images, status.Image) {
				continue
			}
			images = append(images, status.Image)
			line := fmt.Sprintf("node %s can't get the image %s of pod %s/%s (%s)", pod.Spec.NodeName, status.Image, pod.Metadata.Namespace, pod.Metadata.Name, waiting.Reason)
			if message := firstLine(waiting.Message); message != "" {
				line += ": " + message
			}
			missing = append(missing, strings.TrimSpace(line))
		}
	}
	return missing, nil
}
