package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestMissingImages(t *testing.T) {
	g := NewWithT(t)
	waiting := pod("2", "ImagePullBackOff", "Back-off pulling image \"foo:v1\"\nmore")
	sameImage := pod("3", "ErrImagePull", "")
	other := pod("4", "ErrImagePull", "")
	other.Status.ContainerStatuses[0].Image = "bar:v2"
	crashing := pod("5", "CrashLoopBackOff", "")
	crashing.Status.ContainerStatuses[0].Image = "baz:v3"
	get := func(_ context.Context, path string) ([]byte, error) {
		g.Expect(path).To(Equal("/api/v1/pods"))
		return json.Marshal(map[string]any{"items": []*corev1.Pod{waiting, sameImage, other, crashing}})
	}
	g.Expect(MissingImages(t.Context(), get)).To(Equal([]string{
		`node worker can't get the image foo:v1 of pod foo-system/foo-2-x (ImagePullBackOff): Back-off pulling image "foo:v1"`,
		"node worker can't get the image bar:v2 of pod foo-system/foo-4-x (ErrImagePull)",
	}))
	_, err := MissingImages(t.Context(), func(context.Context, string) ([]byte, error) { return nil, errors.New("no route") })
	g.Expect(err).To(MatchError("list the pods: no route"))
}
