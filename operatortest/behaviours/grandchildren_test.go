package behaviours

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// delegates is a correct operator one of whose children is a custom resource. Another operator makes a ConfigMap for
// that child.
const delegates mutation = "makes a Widget for each gadget, and waits until another operator has made the Widget's ConfigMap"

// delegated is the label of the Widgets that the other operator serves.
const delegated = "test.example.com/delegated"

func delegatingOperator(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = nil // least-privilege is not tried
	operator.Children = append(operator.Children, operatortest.Child{Kind: newWidget().GroupVersionKind()})
	operator.MaxWrites++
	return operator
}

// delegate creates the Widget if it is missing. It maintains the gadget's own ConfigMap only once the other operator
// has made the Widget's.
func (r *gadgetReconciler) delegate(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	widget := newWidget()
	widget.SetNamespace(gadget.GetNamespace())
	widget.SetName(gadget.GetName())
	widget.SetLabels(map[string]string{delegated: "true"})
	widget.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)})
	if err := r.Get(ctx, client.ObjectKeyFromObject(widget), newWidget()); err != nil {
		if err := client.IgnoreNotFound(err); err != nil {
			return err
		}
		if err := r.Create(ctx, widget); err != nil {
			return err
		}
	}
	made := client.ObjectKey{Namespace: gadget.GetNamespace(), Name: "widget-" + gadget.GetName()}
	if err := r.Get(ctx, made, &corev1.ConfigMap{}); err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

// runWidgets runs the other operator, in all namespaces.
func runWidgets(ctx context.Context) error {
	unique := true // controller-runtime allows only one controller of each name in a process; other specs run more
	manager, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &unique},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).Named("other-widget").For(newWidget()).Owns(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		widget := newWidget()
		if err := manager.GetClient().Get(ctx, request.NamespacedName, widget); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if widget.GetLabels()[delegated] == "" || widget.GetDeletionTimestamp() != nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, client.IgnoreAlreadyExists(manager.GetClient().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: widget.GetNamespace(), Name: "widget-" + widget.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(widget, widget.GroupVersionKind())},
		}}))
	}))
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

var _ = pooledIt("a child that another operator serves is accepted if the suite runs that operator", func(ctx context.Context, g Gomega) {
	others, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- runWidgets(others) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()
	runner, err := trial.NewRunner(ctx, gadgetOperator(delegates), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, drift, update, deletion, neighbours, crash} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})

var _ = pooledIt("an object that another controller creates for a child is not compared, even if it is of a declared kind", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(""), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(runner.Try(ctx, "a child with a child", func(ctx context.Context, t *trial.Trial) error {
		resource := t.Resource(nil)
		before, err := t.Establish(ctx, t.Start(operatortest.RunOptions{}), resource)
		if err != nil {
			return err
		}
		child, err := t.Child(ctx, t.Operator.Children[0], resource)
		if err != nil {
			return err
		}
		grandchild := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: "grandchild",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(child, child.GroupVersionKind())},
		}}
		if err := t.Cluster.Admin.Create(ctx, grandchild); err != nil {
			return err
		}
		after, err := t.State(ctx)
		if difference := after.Difference(before); difference != "" {
			return fmt.Errorf("the state must be the same with the grandchild:\n%s", difference)
		}
		return err
	})).To(Succeed())
})
