package behaviours

import (
	"context"
	"encoding/json"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Correct operators that copy labels, so that a search by a gadget's labels also finds its ConfigMap.
const (
	copiesLabels  mutation = "copies the labels and annotations of its gadget to the ConfigMap"
	recordsCopies mutation = "copies the labels and annotations of its gadget, except kubectl's, and records the annotations in another one"
)

// appliedAnnotation is the annotation in which recordsCopies records the annotations that it has copied.
const appliedAnnotation = "test.example.com/applied"

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
		return client.IgnoreNotFound(err) // a watch will report the ConfigMap
	}
	changed := found.DeepCopy()
	changed.Labels = merged(found.Labels, gadget.GetLabels())
	copied := gadget.GetAnnotations()
	if r.flaw == recordsCopies {
		delete(copied, corev1.LastAppliedConfigAnnotation)
		applied, err := json.Marshal(copied)
		if err != nil {
			return err
		}
		copied = merged(copied, map[string]string{appliedAnnotation: string(applied)})
	}
	changed.Annotations = merged(found.Annotations, copied)
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
	accepts("passes labels on to its children",
		twin{copiesLabels, []behaviour{silent, stale, deletion, drift, growth}},
		twin{recordsCopies, []behaviour{silent, growth}},
	)
})
