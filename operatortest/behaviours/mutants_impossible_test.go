package behaviours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

var serverKind = gadgetKind.GroupVersion().WithKind("Server")

// serverReconciler maintains a Deployment for each Server, with the Server's image and node selector.
type serverReconciler struct {
	client.Client
	// finishes makes the operator wait for the end of one rollout before it begins another. Such an operator never
	// recovers from an image that doesn't exist, even if the spec is corrected.
	finishes bool
}

func serverOperator(finishes bool) operatortest.Operator {
	return operatortest.Operator{
		CRDs: []string{"testdata/server/servers.yaml"}, Sample: "testdata/server/server.yaml",
		Run: func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
			manager, err := ctrl.NewManager(config, managerOptions(ctx, options, "server-operator"))
			if err != nil {
				return err
			}
			reconciler := &serverReconciler{manager.GetClient(), finishes}
			if err := ctrl.NewControllerManagedBy(manager).Named("server").For(newServer()).Owns(&appsv1.Deployment{}).Complete(reconciler); err != nil {
				return err
			}
			return manager.Start(ctx)
		},
		Children: []operatortest.Child{{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment")}},
		Converged: func(server *unstructured.Unstructured) error {
			status, _, _ := unstructured.NestedMap(server.Object, "status")
			if status["phase"] != "Running" || status["observedGeneration"] != server.GetGeneration() {
				return fmt.Errorf("the status is %v", status)
			}
			return nil
		},
		Values:  map[string][]any{"spec.image": {"server:1", "server:2"}},
		LeftOut: map[string]string{"misoperation/report": "its phase is the same whether a Server is starting or can't start"},
	}
}

func newServer() *unstructured.Unstructured {
	server := &unstructured.Unstructured{}
	server.SetGroupVersionKind(serverKind)
	return server
}

// Reconcile implements reconcile.Reconciler.
func (r *serverReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	server := newServer()
	if err := r.Get(ctx, request.NamespacedName, server); err != nil || server.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := r.deploy(ctx, server)
	phase := "Starting"
	switch {
	case err != nil:
		phase = "Failing"
	case isRolledOut(deployment):
		phase = "Running"
	}
	wanted := map[string]any{"phase": phase, "observedGeneration": server.GetGeneration()}
	before := server.DeepCopy()
	server.Object["status"] = wanted
	if equality.Semantic.DeepEqual(before.Object["status"], server.Object["status"]) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, errors.Join(err, client.IgnoreNotFound(r.Status().Patch(ctx, server, client.MergeFrom(before))))
}

func (r *serverReconciler) deploy(ctx context.Context, server *unstructured.Unstructured) (*appsv1.Deployment, error) {
	image, _, _ := unstructured.NestedString(server.Object, "spec", "image")
	selector, _, _ := unstructured.NestedStringMap(server.Object, "spec", "nodeSelector")
	found := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(server), found)
	if apierrors.IsNotFound(err) {
		labels := map[string]string{"server": server.GetName()}
		found.Namespace, found.Name, found.OwnerReferences = server.GetNamespace(), server.GetName(), []metav1.OwnerReference{*metav1.NewControllerRef(server, serverKind)}
		found.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		found.Spec.Template.Labels = labels
		found.Spec.Template.Spec = corev1.PodSpec{NodeSelector: selector, Containers: []corev1.Container{{Name: "server", Image: image}}}
		return found, r.Create(ctx, found)
	}
	pod := &found.Spec.Template.Spec
	if err != nil || pod.Containers[0].Image == image && equality.Semantic.DeepEqual(pod.NodeSelector, selector) || r.finishes && !isRolledOut(found) {
		return found, err
	}
	pod.Containers[0].Image, pod.NodeSelector = image, selector
	return found, r.Update(ctx, found)
}

func isRolledOut(deployment *appsv1.Deployment) bool {
	status := deployment.Status
	return status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == 1 && status.AvailableReplicas == 1 && status.Replicas == 1
}

// This operator fails only in the trials with an impossible spec: in all others, the cluster recovers, and the operator
// with it. On a busy machine, that takes longer than catchTimeout, because a controller that has failed to create pods
// retries with backoff. So the operator has the usual time limit.
var _ = pooledIt("an operator that waits for a rollout that can't end is caught", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, serverOperator(true), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(tryReportIn(trial.WithAll(ctx), runner, misoperation, "the corrected resource to reach the same final state as a new one")).To(Succeed())
	var failed []string
	for _, tried := range runner.Trials(misoperation.name) {
		if tried.Result == report.Failed {
			failed = append(failed, tried.Name)
		}
	}
	g.Expect(failed).To(ConsistOf(HavePrefix("spec.image is "), HavePrefix("spec.nodeSelector is ")), strings.Join(failed, "\n"))
})

var _ = pooledIt("an operator that rolls out a corrected spec immediately is accepted", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, serverOperator(false), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(misoperation.try(ctx, runner)).To(Succeed())
})
