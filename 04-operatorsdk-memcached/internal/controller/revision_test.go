package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// A new revision replaces every pod. So a new build of the operator must not change the revision, even if it uses a new
// version of Go or of a library, or if the spec has a new field that isn't set.
func TestNewRevisionIsPinned(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newRevision(storedMemcached(), "memcached:1")).To(Equal("535554e2e8d17e3d"), "see newRevision in desired.go")
}

func TestNewRevision(t *testing.T) {
	tests := map[string]struct {
		change func(*cachev1alpha1.Memcached)
		image  string
		// differs is true if the pods must be replaced.
		differs bool
	}{
		"nothing changes":  {change: func(*cachev1alpha1.Memcached) {}},
		"the size changes": {change: func(memcached *cachev1alpha1.Memcached) { memcached.Spec.Size = 5 }},
		"labels change": {change: func(memcached *cachev1alpha1.Memcached) {
			memcached.Labels, memcached.Generation = map[string]string{"team": "shop"}, 4
		}},
		"the status changes": {change: func(memcached *cachev1alpha1.Memcached) { memcached.Status.ReadyReplicas = 1 }},
		"the port changes":   {change: func(memcached *cachev1alpha1.Memcached) { memcached.Spec.ContainerPort = 12000 }, differs: true},
		"the memory changes": {change: func(memcached *cachev1alpha1.Memcached) { memcached.Spec.MemoryMegabytes = 65 }, differs: true},
		//workshop:step 4.14a
		"the connection limit changes": {change: func(memcached *cachev1alpha1.Memcached) { memcached.Spec.MaxConnections = 512 }, differs: true},
		"the image changes":            {change: func(*cachev1alpha1.Memcached) {}, image: "memcached:2", differs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached, image := storedMemcached(), "memcached:1"
			test.change(memcached)
			if test.image != "" {
				image = test.image
			}
			present := newRevision(storedMemcached(), "memcached:1")
			g.Expect(present).To(MatchRegexp("^[0-9a-f]{16}$"))
			differs := newRevision(memcached, image) != present
			g.Expect(differs).To(Equal(test.differs), "see newRevision in desired.go")
		})
	}
}

func TestResourcesOf(t *testing.T) {
	for megabytes, want := range map[int32]string{8: "42Mi", 64: "112Mi", 65: "115968Ki", 128: "192Mi", 1024: "1312Mi", 65536: "81952Mi"} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			memcached := storedMemcached()
			memcached.Spec.MemoryMegabytes = megabytes
			resources := resourcesOf(memcached)
			memory := resources.Limits[corev1.ResourceMemory]
			g.Expect(memory.Cmp(resource.MustParse(want))).To(BeZero(), "the memory limit must be a quarter and 32 MiB more than the items, see resourcesOf in desired.go; found %s", &memory)
			g.Expect(resources.Requests.Memory().Cmp(memory)).To(BeZero(), "with a smaller request, the node could run out of memory, and the pod could be killed")
			g.Expect(resources.Requests.Cpu().String()).To(Equal("10m"), "the CPU request is wrong, see resourcesOf in desired.go")
			g.Expect(resources.Limits.Cpu().String()).To(Equal("1"), "the CPU limit is wrong, see resourcesOf in desired.go")
		})
	}
}
