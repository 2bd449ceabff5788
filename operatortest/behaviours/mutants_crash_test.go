package behaviours

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// insuresOnce survives every crash except one right after the write of insuredAnnotation. A restarted operator writes
// startAnnotation first, so the kit must recognise the write of insuredAnnotation by its description, not by its
// position.
const insuresOnce mutation = "records that it has insured the parcel before it does so, and records each of its starts"

// leaksAndMarks has two flaws. The first one shows whenever the ConfigMap's name changes.
const leaksAndMarks mutation = "leaves the ConfigMap with a former name behind, and takes its finalizer as proof that the parcel is stored"

const (
	// insuredAnnotation is the annotation in which insureOnce records that the parcel is insured.
	insuredAnnotation = "test.example.com/insured"
	// startAnnotation is the annotation in which insureOnce records that the operator was started again.
	startAnnotation = "test.example.com/start"
)

// withoutStarts removes startAnnotation, which would make equal final states differ.
func withoutStarts(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	delete(annotations, startAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}

func (r *gadgetReconciler) insureOnce(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.noteStart(ctx, gadget); err != nil {
		return err
	}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if _, err := r.applyConfigMap(ctx, gadget); err != nil {
		return err
	}
	if _, insured := gadget.GetAnnotations()[insuredAnnotation]; !insured {
		if err := r.patchGadget(ctx, gadget, func() { gadget.SetAnnotations(map[string]string{insuredAnnotation: "yes"}) }); err != nil {
			return err
		}
		r.warehouse.insure(gadget)
	}
	return r.keepConfigMap(ctx, gadget)
}

// noteStart records the operator's start, once, in the ConfigMap that an earlier operator has made. If there is no such
// ConfigMap, it records nothing.
func (r *gadgetReconciler) noteStart(ctx context.Context, gadget *unstructured.Unstructured) error {
	if _, noted := r.memory.LoadOrStore("start", true); noted {
		return nil
	}
	note := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), note)
	if apierrors.IsNotFound(err) {
		return nil
	}
	before := note.DeepCopy()
	note.Annotations = map[string]string{startAnnotation: utilrand.String(8)}
	return errors.Join(err, r.Patch(ctx, note, client.MergeFrom(before)))
}

// insure changes the warehouse without calling change, so the kit can't interrupt it.
func (w *warehouse) insure(gadget *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parcels[insuranceOf(client.ObjectKeyFromObject(gadget))] = "insured"
}

func insuranceOf(parcel types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: parcel.Namespace, Name: parcel.Name + " (insurance)"}
}

var _ = Describe("the test kit", func() {
	catches("doesn't recover from a kill, and also has a flaw that shows when undisturbed", mutant{crash, leaksAndMarks, "outside Kubernetes"})
	catches("doesn't survive a kill after one of its writes", mutant{crash, insuresOnce, "right after patch gadgets.test.example.com gadget\n"})
})

var _ = It("identifies each write of a resource's lifecycle", func(ctx SpecContext) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(""), cluster)
	Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	_, writes, err := undisturbed(ctx, runner)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, write := range writes {
		names = append(names, write.String())
	}
	Expect(names).To(ContainElements(
		"patch gadgets.test.example.com gadget", // the finalizer is added
		"store a parcel",
		"create configmaps settings",
		"patch gadgets.test.example.com/status gadget",
		"store a parcel #2", // the spec has changed
		"create configmaps options",
		"delete configmaps settings",
		"patch gadgets.test.example.com/status gadget #2",
		"remove a parcel", // the resource is deleted
		"patch gadgets.test.example.com gadget #2",
	))
})

var _ = It("describes writes without their random parts, and numbers those with the same description", func() {
	point := &crashPoint{namespace: "spec-1", recorded: []write{{what: "create pods web-*", nth: 1}}}
	words := func(verb, resource, subresource, name string) string {
		return point.wordsFor(traffic.Request{Verb: verb, Resource: resource, Subresource: subresource, Name: name})
	}
	Expect(words("create", "pods", "", "web-*")).To(Equal("create pods web-*"))
	Expect(words("patch", "pods", "status", "web-x7k2p")).To(Equal("patch pods/status web-*"), "a generated name differs each time")
	Expect(words("delete", "services", "", "web-x7k2p")).To(Equal("delete services web-x7k2p"))
	Expect(words("update", "secrets", "", "spec-1-0f8fad5b-d9cb-469f-a165-70867728950e")).To(Equal("update secrets <namespace>-<another UID>"))
	Expect(point.hits("create pods web-*")).To(BeFalse())
	Expect(point.hits("create pods web-*")).To(BeFalse())
	Expect(point.seen).To(HaveExactElements(HaveField("String()", "create pods web-*"), HaveField("String()", "create pods web-* #2")))
})
