package main

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// storedFoo returns a Foo as the API server returns it.
func storedFoo() *examplev1alpha1.Foo {
	return &examplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "uid-of-front", Generation: 3, ResourceVersion: "30"},
		Spec:       examplev1alpha1.FooSpec{DeploymentName: "web", Replicas: 3, Image: "web:1"},
	}
}

// storedDeployment returns the Deployment of storedFoo with a UID and a generation, but without the API server's
// defaults.
func storedDeployment() *appsv1.Deployment {
	deployment := newDeployment(storedFoo())
	deployment.UID = "uid-of-web"
	deployment.Generation = 2
	return deployment
}

func TestNewDeployment(t *testing.T) {
	g := NewWithT(t)
	foo := storedFoo()
	deployment := newDeployment(foo)
	g.Expect(deployment).NotTo(BeNil(), "see newDeployment in deployment.go")
	g.Expect(deployment.Namespace).To(Equal("shop"))
	g.Expect(deployment.Name).To(Equal("web"))
	g.Expect(metav1.IsControlledBy(deployment, foo)).To(BeTrue(), "the Foo must be the controller, so that the Deployment is deleted with it")
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(deployment.Spec.Selector).NotTo(BeNil(), "a Deployment needs a selector")
	g.Expect(deployment.Spec.Selector.MatchLabels).To(Equal(map[string]string{
		"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": "web",
	}), "a selector is immutable, so it may contain only labels that never change")
	wantLabels := And(HaveKeyWithValue("app.kubernetes.io/name", "foo"), HaveKeyWithValue("app.kubernetes.io/instance", "web"),
		HaveKeyWithValue("app.kubernetes.io/managed-by", "foo-controller"))
	g.Expect(deployment.Labels).To(wantLabels, "the Deployment must have the selector's labels and managed-by")
	g.Expect(deployment.Spec.Template.Labels).To(wantLabels, "the pods must have the selector's labels and managed-by")
	foo.Spec.Replicas = 9
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)), "the Deployment must not share memory with the cached Foo")
	deployment.Labels["extra"] = "label"
	g.Expect(deployment.Spec.Template.Labels).NotTo(HaveKey("extra"), "the two sets of labels must not share memory")
	g.Expect(deployment.Spec.Template.Spec).To(Equal(newPodSpec(storedFoo())), "the pods must have the spec that newPodSpec returns")
}

func TestNewPodSpec(t *testing.T) {
	g := NewWithT(t)
	pod := newPodSpec(storedFoo())
	g.Expect(pod.Containers).To(HaveLen(1), "see newPodSpec in deployment.go")
	g.Expect(pod.Containers[0].Name).To(Equal(containerName))
	container := pod.Containers[0]
	g.Expect(container.Image).To(Equal("web:1"))
	requests, limits := container.Resources.Requests, container.Resources.Limits
	g.Expect([]string{requests.Cpu().String(), requests.Memory().String()}).To(Equal([]string{"10m", "32Mi"}), "the container must have these requests, because the scheduler counts them")
	g.Expect([]string{limits.Cpu().String(), limits.Memory().String()}).To(Equal([]string{"500m", "128Mi"}), "the container must have these limits, because a quota may require limits")

	g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()), "the pods never call the API server, so AutomountServiceAccountToken must be false")
	g.Expect(pod.SecurityContext).To(HaveValue(And(
		HaveField("RunAsNonRoot", HaveValue(BeTrue())),
		HaveField("SeccompProfile", HaveField("Type", corev1.SeccompProfileTypeRuntimeDefault)))), "see the pod security standard \"restricted\"")
	g.Expect(container.SecurityContext).To(HaveValue(And(
		HaveField("AllowPrivilegeEscalation", HaveValue(BeFalse())),
		HaveField("Capabilities", HaveField("Drop", ConsistOf(corev1.Capability("ALL")))))), "see the pod security standard \"restricted\"")
}

func TestNewPatch(t *testing.T) {
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		// want is the patch without the UID, or "" if there must be no patch.
		want string
	}{
		"nothing differs": {
			change: func(*appsv1.Deployment) {},
		},
		"fields of others differ": {
			change: func(deployment *appsv1.Deployment) {
				deployment.Annotations = map[string]string{"note": "of a user"}
				deployment.Labels["team"] = "shop"
				deployment.Spec.MinReadySeconds = 5
				deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
				pod := &deployment.Spec.Template.Spec
				pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
				pod.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "test"}}
			},
		},
		"a quantity is written differently": {
			change: func(deployment *appsv1.Deployment) {
				limits := deployment.Spec.Template.Spec.Containers[0].Resources.Limits
				limits[corev1.ResourceCPU] = resource.MustParse("0.5")
			},
		},
		"the replicas differ": {
			change: func(deployment *appsv1.Deployment) { *deployment.Spec.Replicas = 1 },
			want:   `{"spec":{"replicas":3}}`,
		},
		"a label is missing": {
			change: func(deployment *appsv1.Deployment) { delete(deployment.Labels, "app.kubernetes.io/managed-by") },
			want:   `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"foo-controller"}}}`,
		},
		"the token is mounted": {
			change: func(deployment *appsv1.Deployment) {
				deployment.Spec.Template.Spec.AutomountServiceAccountToken = nil
			},
			want: `{"spec":{"template":{"spec":{"automountServiceAccountToken":false}}}}`,
		},
		"the image differs in a pod with a sidecar": {
			change: func(deployment *appsv1.Deployment) {
				pod := &deployment.Spec.Template.Spec
				pod.Containers[0].Image = "other:1"
				pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
			},
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"foo"},{"name":"sidecar"}],
				"containers":[{"image":"web:1","name":"foo"}]}}}}`,
		},
		"the security context is missing": {
			change: func(deployment *appsv1.Deployment) {
				deployment.Spec.Template.Spec.SecurityContext = nil
			},
			want: `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := storedDeployment()
			test.change(found)
			untouched := found.DeepCopy()
			patch, err := newPatch(found, newDeployment(storedFoo()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(untouched), "objects of the cache must never be changed")
			if test.want == "" {
				g.Expect(string(patch)).To(BeEmpty(), "a patch that changes nothing must not be sent")
				return
			}
			g.Expect(withoutUID(g, patch)).To(MatchJSON(test.want), "the patch must contain the differences and nothing else")
		})
	}
}

func TestNewPatchRestoresTheContainer(t *testing.T) {
	g := NewWithT(t)
	found := storedDeployment()
	found.Spec.Template.Spec.Containers[0].Name = "renamed"
	patch, err := newPatch(found, newDeployment(storedFoo()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(apply(g, found, patch).Spec.Template.Spec.Containers).To(ConsistOf(
		HaveField("Name", "renamed"), Equal(storedDeployment().Spec.Template.Spec.Containers[0])))
}

// withoutUID removes the UID from a patch, and fails the test if the patch does not have the UID of storedDeployment.
func withoutUID(g Gomega, patch []byte) []byte {
	var content map[string]any
	g.Expect(json.Unmarshal(patch, &content)).To(Succeed())
	metadata := content["metadata"].(map[string]any)
	g.Expect(metadata).To(HaveKeyWithValue("uid", "uid-of-web"), "the patch must not hit another Deployment of the same name")
	delete(metadata, "uid")
	if len(metadata) == 0 {
		delete(content, "metadata")
	}
	rest, err := json.Marshal(content)
	g.Expect(err).NotTo(HaveOccurred())
	return rest
}

// apply does what the API server does with a strategic merge patch.
func apply(g Gomega, deployment *appsv1.Deployment, patch []byte) *appsv1.Deployment {
	before, err := json.Marshal(deployment)
	g.Expect(err).NotTo(HaveOccurred())
	after, err := strategicpatch.StrategicMergePatch(before, patch, appsv1.Deployment{})
	g.Expect(err).NotTo(HaveOccurred())
	patched := &appsv1.Deployment{}
	g.Expect(json.Unmarshal(after, patched)).To(Succeed())
	return patched
}

func TestFindBlocker(t *testing.T) {
	now := metav1.Now()
	owner := func(change func(*metav1.OwnerReference)) func(*appsv1.Deployment) {
		return func(deployment *appsv1.Deployment) { change(&deployment.OwnerReferences[0]) }
	}
	tests := map[string]struct {
		change     func(*appsv1.Deployment)
		wantReason string
	}{
		"the Foo's own": {
			change: func(*appsv1.Deployment) {},
		},
		"the Foo's own, with an owner reference in another version of the API": {
			change: owner(func(reference *metav1.OwnerReference) { reference.APIVersion = "example.com/v9" }),
		},
		"without an owner": {
			change:     func(deployment *appsv1.Deployment) { deployment.OwnerReferences = nil },
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
		"another Foo's": {
			change: owner(func(reference *metav1.OwnerReference) {
				reference.Name, reference.UID = "other", types.UID("uid-of-other")
			}),
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
		"owned, but not controlled by the Foo": {
			change:     owner(func(reference *metav1.OwnerReference) { reference.Controller = nil }),
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
		"controlled by a Foo of another group with the same UID": {
			change:     owner(func(reference *metav1.OwnerReference) { reference.APIVersion = "example.org/v1alpha1" }),
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
		"controlled by another kind with the same UID": {
			change:     owner(func(reference *metav1.OwnerReference) { reference.Kind = "Bar" }),
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
		"that of a deleted Foo of the same name": {
			change:     owner(func(reference *metav1.OwnerReference) { reference.UID = "uid-of-deleted" }),
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"the Foo's own, being deleted": {
			change:     func(deployment *appsv1.Deployment) { deployment.DeletionTimestamp = &now },
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"the Foo's own, with a different selector": {
			change: func(deployment *appsv1.Deployment) {
				deployment.Spec.Selector.MatchLabels = map[string]string{"app": "web"}
			},
			wantReason: examplev1alpha1.ReasonErrResourceExists,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := storedDeployment()
			test.change(found)
			blocker := findBlocker(storedFoo(), found, newDeployment(storedFoo()))
			if test.wantReason == "" {
				g.Expect(blocker).To(BeNil())
				return
			}
			g.Expect(blocker).NotTo(BeNil(), "the Deployment must be left alone")
			g.Expect(blocker.reason).To(Equal(test.wantReason), blocker.message)
			g.Expect(blocker.message).To(ContainSubstring(`"web"`), "the message must name the Deployment")
			g.Expect(blocker.cause).NotTo(HaveOccurred(), "no retry is needed, because an event will follow")
		})
	}
}
