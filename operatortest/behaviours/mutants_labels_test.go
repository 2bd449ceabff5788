package behaviours

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copiesLabels is a correct operator: a search by a gadget's labels also finds its ConfigMap.
const copiesLabels mutation = "copies the labels and annotations of its gadget to the ConfigMap"

func (r *gadgetReconciler) copyLabels(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := r.keepConfigMap(ctx, gadget); err != nil {
		return err
	}
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), found)
	if err != nil || !metav1.IsControlledBy(found, gadget) {
		return client.IgnoreNotFound(err) // the watch will show it
	}
	changed := found.DeepCopy()
	changed.Labels = merged(found.Labels, gadget.GetLabels())
	changed.Annotations = merged(found.Annotations, gadget.GetAnnotations())
	if maps.Equal(changed.Labels, found.Labels) && maps.Equal(changed.Annotations, found.Annotations) {
		return nil
	}
	return r.patchConfigMap(ctx, changed, found)
}

func merged(old, added map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, old)
	maps.Copy(all, added)
	return all
}

var _ = Describe("the test kit", func() {
	accepts("passes labels on to its children", twin{copiesLabels, []behaviour{silent, stale, deletion, drift}})
})
