package behaviours

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// gadgetFinalizer keeps a deleted gadget until its parcel is gone from the warehouse.
const gadgetFinalizer = "test.example.com/parcel"

// drainTimeout bounds a reconcile that the signal to stop doesn't cancel.
const drainTimeout = 10 * time.Second

var gadgetKind = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Gadget"}

// mutation is one way in which an operator differs from the reference operator, usually a flaw. The zero value means
// no difference.
type mutation string

// gadgetReconciler is a small operator: for each Gadget, it maintains a ConfigMap, and a parcel in a warehouse. It has
// every behaviour unless it is given a flaw.
type gadgetReconciler struct {
	client.Client
	live      client.Reader // bypasses the cache
	recorder  events.EventRecorder
	warehouse *warehouse
	flaw      mutation
	memory    sync.Map // what some operators remember between two reconciles
	*hoard             // for accumulate
}

func newGadget() *unstructured.Unstructured {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(gadgetKind)
	return gadget
}

// Reconcile implements reconcile.Reconciler.
func (r *gadgetReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if r.flaw != givesUp {
		// The manager cancels ctx when it stops. A reconcile in progress must still finish.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
	}
	if r.flaw == readsSecrets {
		_ = r.live.List(ctx, &corev1.SecretList{}, client.InNamespace(request.Namespace))
	}
	gadget := newGadget()
	if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if gadget.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, r.finalize(ctx, gadget)
	}
	if r.flaw == staysRefused && isRefused(gadget) {
		return reconcile.Result{}, nil
	}
	if body, found := chaotic[r.flaw]; found {
		return nextPoll(r.flaw), body(r, ctx, gadget)
	}
	if err := r.begin(ctx, gadget); err != nil {
		return reconcile.Result{}, err
	}
	return nextPoll(r.flaw), r.keepConfigMap(ctx, gadget)
}

// begin does what must precede the ConfigMap: it adds the finalizer, and stores the parcel.
func (r *gadgetReconciler) begin(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.addFinalizer(ctx, gadget); err != nil {
		return err
	}
	return r.warehouse.store(gadget)
}

// keepConfigMap maintains the ConfigMap, deletes those with earlier names, and writes the status. While the ConfigMap
// can't be created or changed, those with earlier names stay.
func (r *gadgetReconciler) keepConfigMap(ctx context.Context, gadget *unstructured.Unstructured) error {
	refusal, err := r.applyConfigMap(ctx, gadget)
	if err != nil {
		return r.reportRefused(ctx, gadget, err)
	}
	if refusal == "" && r.flaw != leaksRenamed && r.flaw != leaksAndMarks {
		if err := r.removeRenamed(ctx, gadget); err != nil {
			return err
		}
	}
	return r.writeStatus(ctx, gadget, refusal)
}

func (r *gadgetReconciler) finalize(ctx context.Context, gadget *unstructured.Unstructured) error {
	if !controllerutil.ContainsFinalizer(gadget, gadgetFinalizer) {
		return r.afterFinalizer(ctx, gadget)
	}
	if r.flaw == letsGoFirst {
		return r.letGo(ctx, gadget)
	}
	leftOut, err := r.beforeCleanup(ctx, gadget)
	if err == nil && !leftOut {
		err = r.warehouse.remove(gadget, r.flaw)
	}
	if err != nil && r.flaw != forgetsOnError {
		return err
	}
	if r.flaw == keepsFinalizer {
		return nil
	}
	if r.flaw == makesRole {
		if err := client.IgnoreNotFound(r.Delete(ctx, roleOf(gadget))); err != nil {
			return err
		}
	}
	if err := r.clean(ctx, gadget); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.patchGadget(ctx, gadget, func() {
		controllerutil.RemoveFinalizer(gadget, gadgetFinalizer)
		if r.flaw == removesOthers {
			gadget.SetFinalizers(nil)
		}
	}))
}

func (r *gadgetReconciler) addFinalizer(ctx context.Context, gadget *unstructured.Unstructured) error {
	if controllerutil.ContainsFinalizer(gadget, gadgetFinalizer) {
		return nil
	}
	err := r.patchGadget(ctx, gadget, func() { controllerutil.AddFinalizer(gadget, gadgetFinalizer) })
	if r.flaw == goesOn {
		return client.IgnoreNotFound(err)
	}
	return err
}

func (r *gadgetReconciler) patchGadget(ctx context.Context, gadget *unstructured.Unstructured, change func()) error {
	before := gadget.DeepCopy()
	change()
	// A merge patch replaces the whole list of finalizers, so the list must be current.
	lock := client.MergeFromWithOptimisticLock{}
	return r.Patch(ctx, gadget, client.MergeFromWithOptions(before, lock))
}

// applyConfigMap creates the gadget's ConfigMap, or gives it the desired data. If the ConfigMap belongs to someone
// else, applyConfigMap changes nothing, and returns a message that explains the refusal.
func (r *gadgetReconciler) applyConfigMap(ctx context.Context, gadget *unstructured.Unstructured) (refusal string, err error) {
	desired := desiredConfigMap(gadget)
	if r.flaw == ignoresColour {
		delete(desired.Data, "colour")
	}
	if r.flaw == ignoresSize {
		desired.Data["size"] = "1"
	}
	if r.flaw == neverBlocks {
		desired.OwnerReferences[0].BlockOwnerDeletion = nil
	}
	if r.flaw == keepsToken || r.flaw == restoresToken {
		desired.Data["token"] = tokenOf(gadget)
	}
	if r.flaw == annotatesSecret {
		desired.Annotations = map[string]string{"test.example.com/password": password}
	}
	found := &corev1.ConfigMap{}
	err = r.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsNotFound(err) {
		return "", r.Create(ctx, desired)
	}
	if err != nil {
		return "", err
	}
	if r.flaw == adopts || r.flaw == overwrites {
		return "", r.Update(ctx, desired)
	}
	if !metav1.IsControlledBy(found, gadget) {
		if r.flaw == triesAnyway {
			return r.tryAnyway(ctx, found)
		}
		return fmt.Sprintf("ConfigMap %s belongs to someone else", found.Name), nil
	}
	if r.flaw == actsOnCreate || r.flaw == trustsMemory && r.hasWritten(gadget) {
		return "", nil
	}
	if r.flaw == keepsToken {
		delete(desired.Data, "token")
	}
	changed := found.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	for _, key := range []string{"size", "colour"} {
		if r.flaw != keepsColour {
			delete(changed.Data, key)
		}
	}
	maps.Copy(changed.Data, desired.Data)
	if maps.Equal(changed.Data, found.Data) {
		return "", nil
	}
	return "", r.patchConfigMap(ctx, changed, found)
}

func desiredConfigMap(gadget *unstructured.Unstructured) *corev1.ConfigMap {
	spec, _, _ := unstructured.NestedMap(gadget.Object, "spec")
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gadget.GetNamespace(), Name: fmt.Sprint(spec["configMapName"])},
		Data:       map[string]string{"size": fmt.Sprint(spec["size"])},
	}
	if colour, found := spec["colour"]; found {
		desired.Data["colour"] = fmt.Sprint(colour)
	}
	desired.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)}
	return desired
}

// removeRenamed deletes the gadget's ConfigMaps with earlier names.
func (r *gadgetReconciler) removeRenamed(ctx context.Context, gadget *unstructured.Unstructured) error {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(gadget.GetNamespace())); err != nil {
		return err
	}
	for i := range list.Items {
		made := &list.Items[i]
		if metav1.IsControlledBy(made, gadget) && made.Name != desiredConfigMap(gadget).Name {
			preconditions := client.Preconditions{UID: &made.UID}
			if r.flaw == deletesByName {
				preconditions.UID = nil
			}
			if err := client.IgnoreNotFound(r.Delete(ctx, made, preconditions)); err != nil {
				return err
			}
		}
	}
	return nil
}
