package behaviours

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

const (
	// nameAnnotation is the annotation in which namesAnew records the name of a gadget's ConfigMap.
	nameAnnotation = "test.example.com/config-map"
	// orderAnnotation is the annotation in which ordersAnew records that it has ordered a parcel.
	orderAnnotation = "test.example.com/ordered"
)

// chaoticOperator adapts the reference operator's description to a mutation.
func chaoticOperator(mutation mutation, operator operatortest.Operator) operatortest.Operator {
	switch mutation {
	case namesAnew:
		operator.Roles = []string{"testdata/gadget/role-live.yaml"}
		operator.Children[0].Name = func(gadget *unstructured.Unstructured) string { return gadget.GetAnnotations()[nameAnnotation] }
		operator.Normalize = func(object *unstructured.Unstructured) {
			annotations := object.GetAnnotations()
			delete(annotations, nameAnnotation)
			object.SetAnnotations(annotations)
			if object.GetGenerateName() != "" {
				object.SetName("generated")
			}
		}
	case insuresOnce:
		operator.Normalize, operator.MaxWrites = withoutStarts, operator.MaxWrites+1
	case watchesMetadata:
		operator.Roles = []string{"testdata/gadget/role-metadata.yaml"}
	case touchesAtPoll:
		operator.LeftOut = map[string]string{trial.Resync: "only its polls show its flaw"}
	case claimsNewest, overwritesOld:
		operator.Roles = []string{"testdata/gadget/role-live.yaml"}
	}
	return generated(mutation, secretiveOperator(mutation, misoperated(mutation, operator)))
}

// chaotic contains the functions that replace the usual reconcile for some mutations, unless the gadget is being
// deleted.
var chaotic = map[mutation]func(*gadgetReconciler, context.Context, *unstructured.Unstructured) error{
	namesAnew:        (*gadgetReconciler).nameAnew,
	marksFirst:       (*gadgetReconciler).markFirst,
	leaksAndMarks:    (*gadgetReconciler).markFirst,
	remembersName:    (*gadgetReconciler).rememberName,
	ordersAnew:       (*gadgetReconciler).orderAnew,
	picksAnotherName: (*gadgetReconciler).pickAnotherName,
	knowsByName:      (*gadgetReconciler).knowByName,
	knowsByUID:       (*gadgetReconciler).knowByUID,
	waitsForOthers:   (*gadgetReconciler).waitForOthers,
	claimsNewest:     (*gadgetReconciler).claimNewest,
	leaksSecret:      (*gadgetReconciler).leakSecret,
	leaksAtStart:     (*gadgetReconciler).leakAtStart,
	declaresSecret:   (*gadgetReconciler).declareSecret,
	writesElsewhere:  (*gadgetReconciler).writeElsewhere,
	makesNothing:     (*gadgetReconciler).makeNothing,
	takesBack:        (*gadgetReconciler).takeBack,
	insuresOnce:      (*gadgetReconciler).insureOnce,
	retriesStale:     (*gadgetReconciler).retryStale,
	sendsInvalid:     (*gadgetReconciler).sendInvalid,
	sharesSelector:   (*gadgetReconciler).deploy,
	selectsOwn:       (*gadgetReconciler).deploy,
	assignsEnv:       (*gadgetReconciler).keepDeployment,
	ownsTemplate:     (*gadgetReconciler).keepDeployment,
	mergesEnv:        (*gadgetReconciler).keepDeployment,
	appliesAll:       (*gadgetReconciler).keepDeployment,
	appliesNews:      (*gadgetReconciler).keepDeployment,
	appliesForEver:   (*gadgetReconciler).keepDeployment,
	touchesAtPoll:    (*gadgetReconciler).touchAtPoll,
	claimsEarly:      (*gadgetReconciler).keepDeployment,
	waitsForPods:     (*gadgetReconciler).keepDeployment,
	waitsForSlowPods: (*gadgetReconciler).keepDeployment,
	servesWidgets:    (*gadgetReconciler).useWidget,
	makesRole:        (*gadgetReconciler).makeRole,
	leaksRole:        (*gadgetReconciler).makeRole,
	claimsFirst:      (*gadgetReconciler).claimFirst,
	runsPods:         (*gadgetReconciler).deploy,
	claimsPods:       (*gadgetReconciler).deploy,
	countsPods:       (*gadgetReconciler).deploy,
	condemns:         (*gadgetReconciler).deploy,
	hidesMissing:     (*gadgetReconciler).awaitSecret,
	needsSecret:      (*gadgetReconciler).awaitSecret,
	leavesFormer:     (*gadgetReconciler).leaveFormer,
	storesFirst:      (*gadgetReconciler).storeFirst,
	resurrects:       (*gadgetReconciler).resurrect,
	panicsOnce:       (*gadgetReconciler).panicOnce,
	panicsAside:      (*gadgetReconciler).panicAside,
	recoversItself:   (*gadgetReconciler).recoverItself,
	logsSecret:       (*gadgetReconciler).keepPassword,
	logsEncoded:      (*gadgetReconciler).keepPassword,
	tellsByEvent:     (*gadgetReconciler).keepPassword,
	tellsByCondition: (*gadgetReconciler).keepPassword,
	annotatesSecret:  (*gadgetReconciler).keepPassword,
	tellsOnError:     (*gadgetReconciler).keepPassword,
	printsSecret:     (*gadgetReconciler).keepPassword,
	copiesSecret:     (*gadgetReconciler).keepPassword,
	unheard:          (*gadgetReconciler).keepPassword,
	waitsForEver:     (*gadgetReconciler).accumulate,
	keepsAll:         (*gadgetReconciler).accumulate,
	watchesForEach:   (*gadgetReconciler).accumulate,
	startsOver:       (*gadgetReconciler).keepDirectly,
	generatesName:    (*gadgetReconciler).generate,
	generatesTwice:   (*gadgetReconciler).generate,
	generatesTwo:     (*gadgetReconciler).generate,
	blanksFirst:      (*gadgetReconciler).keepDirectly,
	replacesChanged:  (*gadgetReconciler).keepDirectly,
	waitsForSecond:   (*gadgetReconciler).accumulate,
	keepsLast:        (*gadgetReconciler).accumulate,
	startsWorkers:    (*gadgetReconciler).accumulate,
	copiesLabels:     (*gadgetReconciler).copyLabels,
	recordsCopies:    (*gadgetReconciler).copyLabels,
	makesTwo:         (*gadgetReconciler).makePair,
	triesSecondOnce:  (*gadgetReconciler).makePair,
	marksOnce:        (*gadgetReconciler).markOnce,
	runsJob:          (*gadgetReconciler).runJob,
	hashesName:       (*gadgetReconciler).hashName,
	delegates:        (*gadgetReconciler).delegate,
	keepsArchive:     (*gadgetReconciler).keepBeside,
	losesArchive:     (*gadgetReconciler).keepBeside,
	ownsArchive:      (*gadgetReconciler).keepBeside,
	sweepsNotes:      (*gadgetReconciler).keepBeside,
	leavesNotes:      (*gadgetReconciler).keepBeside,
	seizesNotes:      (*gadgetReconciler).keepBeside,
}

func (r *gadgetReconciler) nameAnew(ctx context.Context, gadget *unstructured.Unstructured) error {
	// The cache might not show the operator's own annotation yet; then the operator would create a second ConfigMap even
	// without being killed.
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(gadget), gadget); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	desired := desiredConfigMap(gadget)
	if desired.Name = gadget.GetAnnotations()[nameAnnotation]; desired.Name == "" {
		desired.GenerateName = gadget.GetName() + "-"
		if err := r.Create(ctx, desired); err != nil {
			return err
		}
		err := r.patchGadget(ctx, gadget, func() { gadget.SetAnnotations(map[string]string{nameAnnotation: desired.Name}) })
		return errors.Join(err, r.writeStatus(ctx, gadget, ""))
	}
	found := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(desired), found); err != nil {
		return err
	}
	changed := found.DeepCopy()
	changed.Data = desired.Data
	if err := r.Patch(ctx, changed, client.MergeFrom(found)); err != nil {
		return err
	}
	return r.writeStatus(ctx, gadget, "")
}

func (r *gadgetReconciler) markFirst(ctx context.Context, gadget *unstructured.Unstructured) error {
	marked := controllerutil.ContainsFinalizer(gadget, gadgetFinalizer)
	if err := r.addFinalizer(ctx, gadget); err != nil {
		return err
	}
	observed, settled, _ := unstructured.NestedInt64(gadget.Object, "status", "observedGeneration")
	if !marked || settled && observed != gadget.GetGeneration() {
		if err := r.warehouse.store(gadget); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

func (r *gadgetReconciler) rememberName(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	desired := desiredConfigMap(gadget)
	if _, err := r.applyConfigMap(ctx, gadget); err != nil {
		return err
	}
	if former, known := r.memory.Load(gadget.GetName()); known && former != desired.Name {
		old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: desired.Namespace, Name: fmt.Sprint(former)}}
		if err := client.IgnoreNotFound(r.Delete(ctx, old)); err != nil {
			return err
		}
	}
	r.memory.Store(gadget.GetName(), desired.Name)
	return r.writeStatus(ctx, gadget, "")
}

func (r *gadgetReconciler) orderAnew(ctx context.Context, gadget *unstructured.Unstructured) error {
	if _, ordered := gadget.GetAnnotations()[orderAnnotation]; !ordered {
		r.warehouse.order(gadget)
		before := gadget.DeepCopy()
		controllerutil.AddFinalizer(gadget, gadgetFinalizer)
		gadget.SetAnnotations(map[string]string{orderAnnotation: "yes"})
		if err := r.Patch(ctx, gadget, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

// order stores one more parcel for a gadget, even if the gadget has one already.
func (w *warehouse) order(gadget *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parcels[client.ObjectKeyFromObject(gadget)] += "one parcel "
}

func (r *gadgetReconciler) pickAnotherName(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	refusal, err := r.applyConfigMap(ctx, gadget)
	if apierrors.IsAlreadyExists(err) {
		other := desiredConfigMap(gadget)
		other.Name += "-2"
		err = r.Create(ctx, other)
	}
	if err != nil {
		return err
	}
	return r.writeStatus(ctx, gadget, refusal)
}

func (r *gadgetReconciler) knowByName(ctx context.Context, gadget *unstructured.Unstructured) error {
	if done, known := r.memory.Load(gadget.GetName()); known && done == gadget.GetGeneration() {
		return nil
	}
	if err := errors.Join(r.begin(ctx, gadget), r.keepConfigMap(ctx, gadget)); err != nil {
		return err
	}
	r.memory.Store(gadget.GetName(), gadget.GetGeneration())
	return nil
}

func (r *gadgetReconciler) claimNewest(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if refusal, err := r.applyConfigMap(ctx, gadget); err != nil || refusal != "" {
		return errors.Join(err, r.writeStatus(ctx, gadget, refusal))
	}
	newest := newGadget()
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(gadget), newest); err != nil {
		return err
	}
	return r.writeStatus(ctx, newest, "")
}

// patchConfigMap changes a ConfigMap. If the change is based on an old version, because the cache lags behind, the API
// server refuses it, unless the request leaves out the resourceVersion because of a flaw.
func (r *gadgetReconciler) patchConfigMap(ctx context.Context, changed, found *corev1.ConfigMap) error {
	switch r.flaw {
	case patchesByName, trustsMemory:
		return r.Patch(ctx, changed, client.MergeFrom(found))
	case overwritesOld:
		changed.ResourceVersion = ""
		return r.Update(ctx, changed)
	}
	return r.Patch(ctx, changed, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{}))
}

// letGo removes the finalizer before the clean-up that the finalizer protects.
func (r *gadgetReconciler) letGo(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.patchGadget(ctx, gadget, func() { controllerutil.RemoveFinalizer(gadget, gadgetFinalizer) }); err != nil {
		return err
	}
	return r.warehouse.remove(gadget, r.flaw)
}

// afterFinalizer handles a deleted gadget with only others' finalizers: a correct operator does nothing.
func (r *gadgetReconciler) afterFinalizer(ctx context.Context, gadget *unstructured.Unstructured) error {
	switch r.flaw {
	case writesWhileHeld:
		return r.patchGadget(ctx, gadget, func() { gadget.SetAnnotations(map[string]string{"test.example.com/seen": gadget.GetResourceVersion()}) })
	case removesAgain:
		return r.patchGadget(ctx, gadget, func() {})
	}
	return nil
}

// careless wraps a reconciler so that it loses the errors that its flaw ignores.
func careless(sound *gadgetReconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := sound.Reconcile(ctx, request)
		if sound.flaw == swallows || sound.flaw == conflictIsFine && apierrors.IsConflict(err) {
			return result, nil
		}
		return result, err
	})
}
