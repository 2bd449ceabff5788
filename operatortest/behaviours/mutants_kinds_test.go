package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// servesWidgets is a correct operator for two kinds.
const servesWidgets mutation = "also maintains a ConfigMap for each Widget, and its gadgets need one of them"

// makesRole is a correct operator with namespaced resources and a cluster-scoped child. leaksRole is like it, but has a
// flaw.
const (
	makesRole mutation = "creates a ClusterRole for each gadget, and deletes it before it removes its finalizer"
	leaksRole mutation = "creates a ClusterRole for each gadget, and leaves it to the garbage collector"
)

// roleOperator describes these two operators.
func roleOperator(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-clusterroles.yaml"}
	operator.MaxWrites++
	operator.Children = append(operator.Children, operatortest.Child{
		Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Name: func(gadget *unstructured.Unstructured) string { return gadget.GetNamespace() + "-" + gadget.GetName() },
	})
	return operator
}

func roleOf(gadget *unstructured.Unstructured) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: gadget.GetNamespace() + "-" + gadget.GetName()}}
}

func (r *gadgetReconciler) makeRole(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(r.Create(ctx, roleOf(gadget))); err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

// widgetName is the name of the Widget that each gadget needs.
const widgetName = "palette"

// widgetOperator describes the operator servesWidgets. The Widget exists before the sample.
func widgetOperator(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-widgets.yaml"}
	operator.MaxWrites++ // for the Widget's ConfigMap
	operator.Prepare = func(ctx context.Context, writer client.Client, namespace string) error {
		widget := newWidget()
		widget.SetNamespace(namespace)
		widget.SetName(widgetName)
		return writer.Create(ctx, widget)
	}
	return operator
}

func newWidget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)},
	}}
}

// serveWidgets adds a controller that makes a ConfigMap for each Widget.
func (r *gadgetReconciler) serveWidgets(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("widget").For(newWidget()).Owns(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			widget := newWidget()
			if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			owner := metav1.NewControllerRef(widget, widget.GroupVersionKind())
			owner.BlockOwnerDeletion = nil
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: widget.GetNamespace(), Name: "widget-" + widget.GetName(), OwnerReferences: []metav1.OwnerReference{*owner},
			}}
			if err := r.Get(ctx, client.ObjectKeyFromObject(made), &corev1.ConfigMap{}); err == nil {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, made))
		}))
}

// useWidget maintains the gadget's ConfigMap once the Widget's ConfigMap exists.
func (r *gadgetReconciler) useWidget(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := r.Get(ctx, client.ObjectKey{Namespace: gadget.GetNamespace(), Name: "widget-" + widgetName}, &corev1.ConfigMap{}); err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = pooledIt("an operator of two kinds, one of which refers to the other, is accepted", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(servesWidgets), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, silent, frugal, drift, update, deletion, neighbours, leastPrivilege} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})

var _ = Describe("the test kit", func() {
	catches("leaves a cluster-scoped child behind", mutant{deletion, leaksRole, "ClusterRole/<namespace>-gadget"})
})

var _ = pooledIt("an operator with a cluster-scoped child is accepted", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(makesRole), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, update, deletion} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})
