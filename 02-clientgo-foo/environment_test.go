package main

//workshop:given 2.15b

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

func fooWithMessage(message string) *examplev1alpha1.Foo {
	foo := storedFoo()
	foo.Spec.Message = message
	return foo
}

func TestNewDeploymentHasTheMessage(t *testing.T) {
	g := NewWithT(t)
	container := newDeployment(fooWithMessage("hello")).Spec.Template.Spec.Containers[0]
	g.Expect(container.Env).To(Equal([]corev1.EnvVar{{Name: "MESSAGE", Value: "hello"}}))

	container = newDeployment(storedFoo()).Spec.Template.Spec.Containers[0]
	g.Expect(container.Env).To(BeEmpty(), "a Foo without a message must ask for no variable")
}

// patchOfVariables is a test case: a container's variables, the Foo's message, and the variables after the patch.
type patchOfVariables struct {
	found   []corev1.EnvVar
	message string
	want    []corev1.EnvVar
}

func TestNewPatchChangesTheMessage(t *testing.T) {
	secret := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "greeting"}}
	tests := map[string]patchOfVariables{
		"the container has none": {
			message: "hello",
			want:    []corev1.EnvVar{{Name: "MESSAGE", Value: "hello"}},
		},
		"the container has a different one": {
			found:   []corev1.EnvVar{{Name: "MESSAGE", Value: "other"}},
			message: "hello",
			want:    []corev1.EnvVar{{Name: "MESSAGE", Value: "hello"}},
		},
		"the container reads it from a Secret": {
			found:   []corev1.EnvVar{{Name: "MESSAGE", ValueFrom: secret}},
			message: "hello",
			want:    []corev1.EnvVar{{Name: "MESSAGE", Value: "hello"}},
		},
		"the Foo no longer has one": {
			found: []corev1.EnvVar{{Name: "MESSAGE", Value: "hello"}},
			want:  nil,
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

func TestNewPatchKeepsTheVariablesOfOthers(t *testing.T) {
	first, last := corev1.EnvVar{Name: "FIRST", Value: "1"}, corev1.EnvVar{Name: "LAST", Value: "$(MESSAGE), everyone"}
	tests := map[string]patchOfVariables{
		"the message is new": {
			found:   []corev1.EnvVar{first, last},
			message: "hello",
			want:    []corev1.EnvVar{first, last, {Name: "MESSAGE", Value: "hello"}},
		},
		"the message differs": {
			found:   []corev1.EnvVar{first, {Name: "MESSAGE", Value: "other"}, last},
			message: "hello",
			want:    []corev1.EnvVar{first, {Name: "MESSAGE", Value: "hello"}, last},
		},
		"the Foo no longer has a message": {
			found: []corev1.EnvVar{first, {Name: "MESSAGE", Value: "hello"}, last},
			want:  []corev1.EnvVar{first, last},
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

func (p patchOfVariables) run(t *testing.T) {
	g := NewWithT(t)
	found := storedDeployment()
	found.Spec.Template.Spec.Containers[0].Env = p.found
	untouched := found.DeepCopy()
	wanted := newDeployment(fooWithMessage(p.message))
	patch, err := newPatch(found, wanted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(untouched), "objects of the cache must never be changed")
	g.Expect(patch).NotTo(BeEmpty(), "the message differs, so a patch must be sent, see setOwnedPodFields in deployment.go")
	patched := apply(g, found, patch)
	g.Expect(patched.Spec.Template.Spec.Containers[0].Env).To(Equal(p.want), "the patch was %s", patch)
	g.Expect(newPatch(patched, wanted)).To(BeEmpty(), "nothing differs any more, so nothing must be sent")
}

// A Deployment may contain the same variable twice. A strategic merge patch that removes one removes both, so a
// second patch must add it again.
func TestNewPatchComesToRestWhenTheMessageIsThereTwice(t *testing.T) {
	g := NewWithT(t)
	wanted := newDeployment(fooWithMessage("hello"))
	patched := storedDeployment()
	patched.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
		{Name: "MESSAGE", Value: "other"}, {Name: "FIRST", Value: "1"}, {Name: "MESSAGE", Value: "hello"},
	}
	for range 2 {
		patch, err := newPatch(patched, wanted)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(patch).NotTo(BeEmpty(), "the container must have the variable exactly once")
		patched = apply(g, patched, patch)
	}
	g.Expect(patched.Spec.Template.Spec.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "FIRST", Value: "1"}, {Name: "MESSAGE", Value: "hello"}}))
	g.Expect(newPatch(patched, wanted)).To(BeEmpty(), "nothing differs any more, so nothing must be sent")
}
