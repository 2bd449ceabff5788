package behaviours

import (
	"context"
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

var depotKind = gadgetKind.GroupVersion().WithKind("Depot")

// sizeAnnotation is the annotation of a Depot's children that contains the size and the colour from the Depot's spec.
const sizeAnnotation = "test.example.com/size"

// depotReconciler is a correct operator for a cluster-scoped kind: for each Depot, it maintains a ClusterRole, and a
// ConfigMap in the operator's namespace. It reports a refused child only with a Warning event.
type depotReconciler struct {
	client.Client
	recorder  events.EventRecorder
	namespace string
	rolesOnly bool // makes no ConfigMap
}

// depotOperator describes the operator that depotReconciler implements.
func depotOperator() operatortest.Operator {
	drift := map[string]string{"another size": `{"metadata":{"annotations":{"test.example.com/size":"99"}}}`}
	return operatortest.Operator{
		CRDs: []string{"testdata/depot/depots.yaml"}, Sample: "testdata/depot/depot.yaml", Roles: []string{"testdata/depot/role.yaml"},
		Run: func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
			return runDepots(ctx, config, options, false)
		},
		Children: []operatortest.Child{
			{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Drift: drift},
			{Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Drift: drift},
		},
		MaxWrites: 3, // for the ConfigMap, the ClusterRole and the status
		LeftOut: map[string]string{
			"least-privilege/create events.events.k8s.io": "it emits Events only about name conflicts and refused children",
			"least-privilege/patch events.events.k8s.io":  "it emits Events only about name conflicts and refused children",
		},
	}
}

func newDepot() *unstructured.Unstructured {
	depot := &unstructured.Unstructured{}
	depot.SetGroupVersionKind(depotKind)
	return depot
}

func runDepots(ctx context.Context, config *rest.Config, options operatortest.RunOptions, rolesOnly bool) error {
	manager, err := ctrl.NewManager(config, managerOptions(ctx, options, "depot-operator"))
	if err != nil {
		return err
	}
	reconciler := &depotReconciler{
		Client: manager.GetClient(), recorder: manager.GetEventRecorder("depot-operator"), namespace: options.Namespace, rolesOnly: rolesOnly,
	}
	// Every child has its Depot's name. Unlike Owns, byName also queues the Depot after a change to someone else's object
	// that has taken a child's place.
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: object.GetName()}}}
	})
	err = ctrl.NewControllerManagedBy(manager).Named("depot").For(newDepot()).
		Watches(&corev1.ConfigMap{}, byName).Watches(&rbacv1.ClusterRole{}, byName).Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// Reconcile implements reconcile.Reconciler.
func (r *depotReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The manager cancels ctx when it stops. A call in progress must still finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	depot := newDepot()
	if err := r.Get(ctx, request.NamespacedName, depot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if depot.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil // the garbage collector deletes the children
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: depot.GetGeneration()}
	children := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace}}, &rbacv1.ClusterRole{}}
	if r.rolesOnly {
		children = children[1:]
	}
	for _, child := range children {
		child.SetName(depot.GetName())
		refusal, err := r.apply(ctx, depot, child)
		if apierrors.IsForbidden(err) {
			r.recorder.Eventf(depot, nil, corev1.EventTypeWarning, "Refused", "Reconcile", "%s", err)
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		if refusal != "" {
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NameTaken", refusal
		}
	}
	return reconcile.Result{}, r.writeStatus(ctx, depot, ready)
}

func (r *depotReconciler) apply(ctx context.Context, depot *unstructured.Unstructured, child client.Object) (refusal string, err error) {
	spec, _, _ := unstructured.NestedMap(depot.Object, "spec")
	wanted := map[string]string{sizeAnnotation: fmt.Sprint(spec["size"], spec["colour"])}
	err = r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if apierrors.IsNotFound(err) {
		child.SetAnnotations(wanted)
		child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(depot, depotKind)})
		return "", r.Create(ctx, child)
	}
	if err != nil {
		return "", err
	}
	if !metav1.IsControlledBy(child, depot) {
		return child.GetName() + " belongs to someone else", nil
	}
	if child.GetAnnotations()[sizeAnnotation] == wanted[sizeAnnotation] {
		return "", nil
	}
	before := child.DeepCopyObject().(client.Object)
	annotations := maps.Clone(child.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, wanted)
	child.SetAnnotations(annotations)
	return "", r.Patch(ctx, child, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *depotReconciler) writeStatus(ctx context.Context, depot *unstructured.Unstructured, ready metav1.Condition) error {
	conditions, err := conditionList(depot)
	if err != nil {
		return err
	}
	wasRefused := meta.IsStatusConditionFalse(conditions, ready.Type)
	if !meta.SetStatusCondition(&conditions, ready) {
		return nil
	}
	before := depot.DeepCopy()
	if err := setStatus(depot, conditions); err != nil {
		return err
	}
	if err := r.Status().Patch(ctx, depot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	if ready.Status == metav1.ConditionFalse && !wasRefused {
		r.recorder.Eventf(depot, nil, corev1.EventTypeWarning, ready.Reason, "Reconcile", "%s", ready.Message)
	}
	return nil
}

var _ = pooledIt("an operator of a cluster-scoped kind, with a cluster-scoped child, has every behaviour that need not run alone", func(ctx context.Context, g Gomega) {
	tryDepot(ctx, g, func(b behaviour) bool { return !b.alone })
})

var _ = It("an operator of a cluster-scoped kind, with a cluster-scoped child, has every behaviour that must run alone", func(ctx SpecContext) {
	tryDepot(ctx, NewGomega(Fail), func(b behaviour) bool { return b.alone })
})

var _ = pooledIt("no quota is tried on children that are all cluster-scoped", func(ctx context.Context, g Gomega) {
	operator := depotOperator()
	operator.Children = operator.Children[1:] // the ClusterRole
	operator.Run = func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
		return runDepots(ctx, config, options, true)
	}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(misoperation.try(ctx, runner)).To(Succeed())
	g.Expect(runner.Trials(misoperation.name)).To(HaveExactElements(HaveField("Result", report.NotTried)))
})

func tryDepot(ctx context.Context, g Gomega, selected func(behaviour) bool) {
	runner, err := trial.NewRunner(ctx, depotOperator(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range behaviours {
		if selected(behaviour) && behaviour.leftOut(runner.Operator) == "" {
			g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
		}
	}
}
