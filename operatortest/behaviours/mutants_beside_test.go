package behaviours

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// Operators with a second ConfigMap, which should outlive the gadget. Only keepsArchive is correct.
const (
	keepsArchive mutation = "keeps a second ConfigMap without an owner reference, which outlives the gadget"
	losesArchive mutation = "deletes the second ConfigMap with the gadget, although it should stay"
	ownsArchive  mutation = "sets an owner reference on the second ConfigMap, although it should stay"
)

// Operators with a second ConfigMap, which should have no owner reference, but be deleted with the gadget. Only
// sweepsNotes is correct.
const (
	sweepsNotes mutation = "keeps a second ConfigMap without an owner reference, and deletes it before it removes its finalizer"
	leavesNotes mutation = "keeps a second ConfigMap without an owner reference, and never deletes it"
	seizesNotes mutation = "takes over a ConfigMap with the second one's name that no object controls"
)

// ownerLabel is the label with the gadget's UID on a second ConfigMap that should be deleted with the gadget.
const ownerLabel = "test.example.com/gadget"

// besideOperator describes the operators in this file.
func besideOperator(flaw mutation, operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-beside.yaml"}
	second := operatortest.Child{
		Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Name: besideName,
		Drift: map[string]string{"another size": `{"data":{"size":"99"}}`},
	}
	switch flaw {
	case keepsArchive, losesArchive, ownsArchive:
		second.Retained = true
	default:
		second.Unowned = true
	}
	operator.Children = append(operator.Children, second)
	operator.MaxWrites++
	return operator
}

func besideName(gadget *unstructured.Unstructured) string { return gadget.GetName() + "-beside" }

// keepBeside does what the reference operator does. Before the ConfigMap, it also maintains the second one.
func (r *gadgetReconciler) keepBeside(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	refusal, err := r.applyBeside(ctx, gadget)
	if err != nil {
		return r.reportRefused(ctx, gadget, err)
	}
	if refusal != "" {
		return r.writeStatus(ctx, gadget, refusal)
	}
	return r.keepConfigMap(ctx, gadget)
}

func (r *gadgetReconciler) applyBeside(ctx context.Context, gadget *unstructured.Unstructured) (refusal string, err error) {
	wanted := desiredConfigMap(gadget)
	wanted.Name = besideName(gadget)
	wanted.OwnerReferences[0].Controller = nil // removeRenamed deletes what the gadget controls
	if r.flaw != ownsArchive {
		wanted.OwnerReferences = nil
	}
	isArchive := r.flaw == keepsArchive || r.flaw == losesArchive || r.flaw == ownsArchive
	if !isArchive {
		wanted.Labels = map[string]string{ownerLabel: string(gadget.GetUID())}
	}
	found := &corev1.ConfigMap{}
	err = r.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		return "", r.Create(ctx, wanted)
	}
	if err != nil {
		return "", err
	}
	isOurs := isArchive || r.flaw == seizesNotes || found.Labels[ownerLabel] == string(gadget.GetUID())
	if owner := metav1.GetControllerOf(found); !isOurs || owner != nil && owner.UID != gadget.GetUID() {
		return fmt.Sprintf("ConfigMap %s belongs to someone else", found.Name), nil
	}
	if found.Data["size"] == wanted.Data["size"] && found.Data["colour"] == wanted.Data["colour"] {
		return "", nil
	}
	changed := found.DeepCopy()
	changed.Data = wanted.Data
	return "", r.patchConfigMap(ctx, changed, found)
}

// sweep deletes the second ConfigMap if it belongs to this gadget; with losesArchive, it deletes any ConfigMap of that
// name. It reads the ConfigMap from the API server, because the cache may not show it yet, or may show that of an
// earlier gadget.
func (r *gadgetReconciler) sweep(ctx context.Context, gadget *unstructured.Unstructured) error {
	found := &corev1.ConfigMap{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: gadget.GetNamespace(), Name: besideName(gadget)}, found)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if r.flaw != losesArchive && found.Labels[ownerLabel] != string(gadget.GetUID()) {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, found, client.Preconditions{UID: &found.UID}))
}

var _ = Describe("the test kit", func() {
	catches("does not treat a child without an owner reference as declared",
		mutant{deletion, losesArchive, "ConfigMap gadget-beside, which must outlive its Gadget (Child.Retained), was deleted"},
		mutant{deletion, ownsArchive, "deleted by the garbage collector, because of an owner reference to the resource"},
		mutant{deletion, leavesNotes, "ConfigMap/gadget-beside"},
		mutant{collision, seizesNotes, "no condition has a message that names it"},
	)
	twins := []behaviour{converges, drift, collision, update, transitions, deletion, earlyDeletion, namespaceDeletion, neighbours, crash, faults, history, stale, timeTravel}
	accepts("has a child without an owner reference, and treats it as declared", twin{keepsArchive, twins}, twin{sweepsNotes, twins})
})

var _ = pooledIt("a child without an owner reference must be declared as such", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(sweepsNotes)
	operator.Children[1].Unowned, operator.Timeout = false, catchTimeout
	g.Expect(tryReport(ctx, converges, operator, "if that is on purpose, see Child.Unowned and Child.Retained")).To(Succeed())
})
