package applying

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/controlplane"
)

// start starts etcd and an API server. It returns a client, and the list to which the client appends "create", "patch"
// or "apply" for each such request.
func start(t *testing.T) (client.Client, *[]string) {
	g := NewWithT(t)
	assets, err := controlplane.FindAssets()
	g.Expect(err).NotTo(HaveOccurred())
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	writes := &[]string{}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			*writes = append(*writes, "create")
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			*writes = append(*writes, "patch")
			return c.Patch(ctx, object, patch, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			*writes = append(*writes, "apply")
			return c.Apply(ctx, applied, options...)
		},
	}), writes
}

// newOwner creates the ConfigMap that controls the Deployment of a test.
func newOwner(t *testing.T, c client.Client, name string) *corev1.ConfigMap {
	owner := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string]string{"image": "nginx:1.29"},
	}
	NewWithT(t).Expect(c.Create(t.Context(), owner)).To(Succeed())
	return owner
}

// read returns the owner's Deployment.
func read(t *testing.T, c client.Client, owner *corev1.ConfigMap) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(owner), deployment)).To(Succeed())
	return deployment
}

func TestApply(t *testing.T) {
	c, writes := start(t)

	t.Run("a second pass applies what was created, and a third one sends nothing", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "silent")
		*writes = nil
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(*writes).To(Equal([]string{"create"}))
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(*writes).To(Equal([]string{"create", "patch", "apply"}), "ownByApply sends the patch")
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(*writes).To(HaveLen(3), "nothing differs: no request must be sent")
	})

	t.Run("our fields come back, and others' fields stay", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "drift")
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		edit := []byte(`{"metadata":{"annotations":{"team":"shop"}},
			"spec":{"template":{"spec":{"containers":[{"name":"page","image":"nginx:1.0"},{"name":"proxy","image":"envoy:1.36"}]}}}}`)
		edited := read(t, c, owner)
		g.Expect(c.Patch(t.Context(), edited, client.RawPatch(types.StrategicMergePatchType, edit), client.FieldOwner("someone"))).To(Succeed())

		*writes = nil
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(*writes).To(Equal([]string{"apply"}), "the image is no longer ours")
		repaired := read(t, c, owner)
		g.Expect(repaired.Annotations).To(HaveKeyWithValue("team", "shop"))
		g.Expect(images(repaired)).To(ConsistOf("nginx:1.29", "envoy:1.36"))

		*writes = nil
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(*writes).To(BeEmpty())
		owner.Data["image"] = "nginx:1.30"
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(images(read(t, c, owner))).To(ConsistOf("nginx:1.30", "envoy:1.36"))
	})

	t.Run("a field that the operator no longer sends is removed, even if create sent it", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "remove")
		g.Expect(create(t.Context(), c, newDeployment(owner).WithLabels(map[string]string{"tier": "web"}))).To(Succeed())
		g.Expect(read(t, c, owner).Labels).To(HaveKey("tier"))
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(read(t, c, owner).Labels).NotTo(HaveKey("tier"), "see ownByApply")
		g.Expect(read(t, c, owner).Labels).To(HaveKey("app.kubernetes.io/name"))
	})

	t.Run("a stale copy is refused", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "stale")
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		stale := read(t, c, owner)
		changed := stale.DeepCopy()
		changed.Annotations = map[string]string{"team": "shop"}
		g.Expect(c.Patch(t.Context(), changed, client.MergeFrom(stale))).To(Succeed())
		owner.Data["image"] = "nginx:1.30"
		err := apply(t.Context(), c, stale, newDeployment(owner))
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "found: %v", err)
	})

	t.Run("a deleted Deployment is not created again", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "deleted")
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(Succeed())
		deleted := read(t, c, owner)
		g.Expect(c.Delete(t.Context(), read(t, c, owner))).To(Succeed())
		owner.Data["image"] = "nginx:1.30"
		err := apply(t.Context(), c, deleted, newDeployment(owner))
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "found: %v", err)
		g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(owner), &appsv1.Deployment{}))).To(BeTrue())
	})

	t.Run("someone else's Deployment is left alone, even if it isn't in the cache yet", func(t *testing.T) {
		g := NewWithT(t)
		owner := newOwner(t, c, "taken")
		other := newOwner(t, c, "other")
		foreign := newDeployment(other)
		foreign.WithName(owner.Name)
		g.Expect(create(t.Context(), c, foreign)).To(Succeed())
		before := read(t, c, owner)
		g.Expect(ensureDeployment(t.Context(), c, owner)).To(MatchError(ContainSubstring("belongs to someone else")))
		g.Expect(apierrors.IsAlreadyExists(create(t.Context(), c, newDeployment(owner)))).To(BeTrue())
		g.Expect(read(t, c, owner)).To(Equal(before))
	})
}

// images returns the images of the Deployment's containers.
func images(deployment *appsv1.Deployment) []string {
	var images []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	return images
}
