package main

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// imageVariable is the suffix of the names of environment variables whose values are images.
const imageVariable = "_IMAGE"

// relatedImage is an image that the operator needs. Its name can be any string.
type relatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// images lists the images of the containers, then those of the init containers, and then those in environment variables.
// A cluster without access to the internet needs copies of all of them. An image that is not pinned is an error.
func (m *manifests) images() ([]relatedImage, error) {
	containers, err := m.containers()
	if err != nil {
		return nil, err
	}
	var images []relatedImage
	for _, container := range containers {
		images = append(images, relatedImage{Name: container.Name, Image: container.Image})
	}
	for _, container := range containers {
		images = append(images, variableImages(container.Env)...)
	}
	for _, image := range images {
		if !isPinned(image.Image) {
			return nil, fmt.Errorf("the image %q of %s is not pinned: give it a tag other than latest, or a digest", image.Image, image.Name)
		}
	}
	return images, nil
}

// variableImages returns the images in environment variables: the value of MEMCACHED_IMAGE gets the name memcached.
func variableImages(variables []corev1.EnvVar) []relatedImage {
	var images []relatedImage
	for _, variable := range variables {
		name, isImage := strings.CutSuffix(variable.Name, imageVariable)
		if isImage {
			name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
			images = append(images, relatedImage{Name: name, Image: variable.Value})
		}
	}
	return images
}

func (m *manifests) containers() ([]corev1.Container, error) {
	var deployment appsv1.Deployment
	if err := convert(m.deployment, &deployment); err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return nil, fmt.Errorf("the Deployment %s has no container", m.deployment.GetName())
	}
	return slices.Concat(pod.Containers, pod.InitContainers), nil
}

// isPinned reports whether the image has a SHA-256 digest or, if it has no digest, a tag other than latest.
func isPinned(image string) bool {
	if _, digest, found := strings.Cut(image, "@"); found {
		return strings.HasPrefix(digest, "sha256:")
	}
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return found && tag != "" && tag != "latest"
}
