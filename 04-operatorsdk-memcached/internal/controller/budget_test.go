package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

func newBudget(memcached *cachev1alpha1.Memcached) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	setBudget(budget, memcached)
	return budget
}

func TestSetBudget(t *testing.T) {
	tests := map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		// stays is true if the operator must leave the change alone.
		stays bool
	}{
		"nothing was changed": {change: func(*policyv1.PodDisruptionBudget) {}, stays: true},
		"labels and annotations were added": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Labels["team"], budget.Annotations = "shop", map[string]string{"note": "of a user"}
		}, stays: true},
		"a label is missing": {change: func(budget *policyv1.PodDisruptionBudget) { delete(budget.Labels, managedByLabel) }},
		"all pods may be evicted": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Spec.MaxUnavailable = new(intstr.FromString("100%"))
		}},
		"pods that aren't ready may not be evicted": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.IfHealthyBudget)
		}},
		"it sets minAvailable instead": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, new(intstr.FromInt32(1))
		}},
		"it selects other pods": {change: func(budget *policyv1.PodDisruptionBudget) { budget.Spec.Selector.MatchLabels[instanceLabel] = "other" }},
		"it selects no pods":    {change: func(budget *policyv1.PodDisruptionBudget) { budget.Spec.Selector = nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			budget := newBudget(storedMemcached())
			g.Expect(budget.Spec.Selector).NotTo(BeNil(), "see setBudget in desired.go")
			g.Expect(budget.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)), "pods that aren't ready must not block a drain, see setBudget in desired.go")
			test.change(budget)
			want := newBudget(storedMemcached())
			if test.stays {
				want = budget.DeepCopy()
			}
			setBudget(budget, storedMemcached())
			g.Expect(budget).To(BeComparableTo(want), "see setBudget in desired.go (- found, + wanted)")
		})
	}
}

// ownedBudget returns the budget that storedMemcached controls.
func ownedBudget() *policyv1.PodDisruptionBudget {
	budget := newBudget(storedMemcached())
	budget.UID, budget.OwnerReferences = "uid-of-budget", ownedDeployment().OwnerReferences
	return budget
}

func TestRemoveBudget(t *testing.T) {
	unowned := ownedBudget()
	unowned.OwnerReferences = nil
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	tests := map[string]struct {
		objects []client.Object
		// answer is the API server's answer to the deletion, or nil if it succeeds.
		answer error
		// wantLeft is true if a budget must remain.
		wantLeft bool
		// wantBlocked is true if a blocker must be returned, and wantErr if an error must be.
		wantBlocked, wantErr bool
	}{
		"there is none":         {},
		"it is the Memcached's": {objects: []client.Object{ownedBudget()}},
		"it is terminating":     {objects: []client.Object{terminating(ownedBudget())}, wantLeft: true},
		"it is someone else's":  {objects: []client.Object{unowned}, wantLeft: true},
		"it has just gone":      {objects: []client.Object{ownedBudget()}, answer: apierrors.NewNotFound(budgets, "sessions"), wantLeft: true},
		"a policy keeps it": {
			objects: []client.Object{ownedBudget()}, answer: apierrors.NewForbidden(budgets, "sessions", errors.New("policy")),
			wantLeft: true, wantBlocked: true, wantErr: true,
		},
		"the API server has a problem": {
			objects: []client.Object{ownedBudget()}, answer: apierrors.NewInternalError(errors.New("etcd")), wantLeft: true, wantErr: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var requests []client.DeleteOptions
			counted := interceptor.Funcs{Delete: func(ctx context.Context, stored client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				requests = append(requests, *(&client.DeleteOptions{}).ApplyOptions(options))
				if test.answer != nil {
					return test.answer
				}
				return stored.Delete(ctx, object, options...)
			}}
			reconciler := testReconciler(t, counted, test.objects...)
			found := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}}
			blocker, err := reconciler.removeBudget(t.Context(), storedMemcached(), found)
			g.Expect(err != nil).To(Equal(test.wantErr), "only a failed deletion is an error, see removeBudget in children.go; found: %v", err)
			g.Expect(blocker != nil).To(Equal(test.wantBlocked), "only a refused deletion is a blocker, see removeBudget in children.go; found: %v", blocker)
			err = reconciler.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "sessions"}, found)
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			g.Expect(err == nil).To(Equal(test.wantLeft), "see removeBudget in children.go")
			if test.wantLeft && test.answer == nil {
				g.Expect(requests).To(BeEmpty(), "no delete request may be sent, see removeBudget in children.go")
			}
			for _, request := range requests {
				g.Expect(request.Preconditions).NotTo(BeNil(), "the name may have passed to another budget, see removeBudget in children.go")
				g.Expect(request.Preconditions.UID).To(HaveValue(BeEquivalentTo("uid-of-budget")), "see removeBudget in children.go")
			}
		})
	}
}

func TestBudgetFollowsTheSize(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	reconciler := testReconciler(t, interceptor.Funcs{})
	for _, size := range []int32{1, 2, 3, 1} {
		memcached.Spec.Size = size
		_, blocker, err := reconciler.applyChildren(t.Context(), memcached)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(blocker).To(BeNil())
		err = reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), &policyv1.PodDisruptionBudget{})
		g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		g.Expect(err == nil).To(Equal(size > 1), "size %d: there must be a budget only for several pods, see applyChildren in children.go", size)
	}
}

// Without its Deployment, a Memcached has no pods at all, so the refused Deployment is what the status must report, not
// the refused deletion of the budget.
func TestBudgetIsRemovedLast(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	memcached.Spec.Size = 1
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "sessions", errors.New("policy"))
	faults := refusingDeployments(forbidden)
	faults.Delete = failingDeletion(forbidden).Delete
	_, blocker, err := testReconciler(t, faults, ownedBudget()).applyChildren(t.Context(), memcached)
	g.Expect(err).To(MatchError(ContainSubstring("delete PodDisruptionBudget")), "the error of the deletion must be returned, see applyChildren in children.go")
	g.Expect(blocker).NotTo(BeNil(), "see applyChildren in children.go")
	g.Expect(blocker.message).NotTo(ContainSubstring("PodDisruptionBudget"), "the refused Deployment must be reported first, see applyChildren in children.go")
}
