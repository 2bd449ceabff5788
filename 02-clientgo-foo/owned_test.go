package main

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func TestSetOwnedFields(t *testing.T) {
	ofOthers := func(deployment *appsv1.Deployment) {
		deployment.Annotations = map[string]string{"note": "of a user"}
		deployment.Labels["team"] = "shop"
		deployment.Spec.MinReadySeconds = 5
		deployment.Spec.Template.Labels["team"] = "shop"
		pod := &deployment.Spec.Template.Spec
		pod.SecurityContext.FSGroup = new(int64(1))
		pod.Containers[0].SecurityContext.Privileged = new(false)
		pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
	}
	tests := map[string]func(*appsv1.Deployment){
		"nothing differs":     func(*appsv1.Deployment) {},
		"the replicas differ": func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = new(int32(9)) },
		"a label is missing":  func(deployment *appsv1.Deployment) { delete(deployment.Labels, "app.kubernetes.io/managed-by") },
		"a pod's label differs": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Labels["app.kubernetes.io/managed-by"] = "someone"
		},
		"the token is mounted": func(deployment *appsv1.Deployment) { deployment.Spec.Template.Spec.AutomountServiceAccountToken = nil },
		"pods may run as root": func(deployment *appsv1.Deployment) { deployment.Spec.Template.Spec.SecurityContext.RunAsNonRoot = nil },
		"pods have no seccomp profile": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.SecurityContext.SeccompProfile = nil
		},
		"the image differs":  inContainer(func(container *corev1.Container) { container.Image = "other:1" }),
		"a limit is missing": inContainer(func(container *corev1.Container) { delete(container.Resources.Limits, corev1.ResourceCPU) }),
		"a request is added": inContainer(func(container *corev1.Container) {
			container.Resources.Requests["ephemeral-storage"] = resources("1", "1Gi")["memory"]
		}),
		"privileges may grow":   inContainer(func(container *corev1.Container) { container.SecurityContext.AllowPrivilegeEscalation = nil }),
		"capabilities are kept": inContainer(func(container *corev1.Container) { container.SecurityContext.Capabilities = nil }),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment, want := storedDeployment(), storedDeployment()
			ofOthers(want)
			ofOthers(deployment)
			change(deployment)
			wanted := newDeployment(storedFoo())
			setOwnedFields(deployment, wanted)
			g.Expect(difference(g, deployment, want)).To(MatchJSON("{}"),
				"the fields that still differ after setOwnedFields, see deployment.go")
			g.Expect(wanted).To(Equal(newDeployment(storedFoo())), "the desired Deployment must not be changed")
		})
	}
}

// difference returns the changes that turn one Deployment into another.
func difference(g Gomega, from, to *appsv1.Deployment) string {
	before, err := json.Marshal(from)
	g.Expect(err).NotTo(HaveOccurred())
	after, err := json.Marshal(to)
	g.Expect(err).NotTo(HaveOccurred())
	changes, err := strategicpatch.CreateTwoWayMergePatch(before, after, appsv1.Deployment{})
	g.Expect(err).NotTo(HaveOccurred())
	return string(changes)
}

// inContainer returns a change to a Deployment that makes the given change in the first container.
func inContainer(change func(*corev1.Container)) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) { change(&deployment.Spec.Template.Spec.Containers[0]) }
}

func TestSetOwnedFieldsOfAnEmptyDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment, wanted := &appsv1.Deployment{}, newDeployment(storedFoo())
	setOwnedFields(deployment, wanted)
	g.Expect(deployment.Labels).To(Equal(wanted.Labels))
	g.Expect(deployment.Spec.Selector).To(BeNil(), "a selector can't be changed, so it must be left out")
	g.Expect(deployment.Spec.Template.Labels).To(Equal(wanted.Spec.Template.Labels))
	pod := deployment.Spec.Template.Spec
	g.Expect(pod.SecurityContext).To(Equal(wanted.Spec.Template.Spec.SecurityContext))
	g.Expect(pod.Containers).To(Equal(wanted.Spec.Template.Spec.Containers), "a missing container must be added")
}
