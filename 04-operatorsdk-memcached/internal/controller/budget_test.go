package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		// stays tells whether the operator must leave the change alone.
		stays bool
	}{
		"nothing was changed": {change: func(*policyv1.PodDisruptionBudget) {}, stays: true},
		"labels, annotations and a policy were added": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Labels["team"], budget.Annotations = "shop", map[string]string{"note": "of a user"}
			budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		}, stays: true},
		"a label is missing": {change: func(budget *policyv1.PodDisruptionBudget) { delete(budget.Labels, managedByLabel) }},
		"all pods may be evicted": {change: func(budget *policyv1.PodDisruptionBudget) {
			budget.Spec.MaxUnavailable = new(intstr.FromString("100%"))
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

func TestRemoveBudget(t *testing.T) {
	budget := func() *policyv1.PodDisruptionBudget {
		budget := newBudget(storedMemcached())
		budget.UID, budget.OwnerReferences = "uid-of-budget", ownedDeployment().OwnerReferences
		return budget
	}
	unowned := budget()
	unowned.OwnerReferences = nil
	tests := map[string]struct {
		objects []client.Object
		// wantLeft tells whether a budget must remain.
		wantLeft bool
	}{
		"there is none":         {},
		"it is the Memcached's": {objects: []client.Object{budget()}},
		"it is terminating":     {objects: []client.Object{terminating(budget())}, wantLeft: true},
		"it is someone else's":  {objects: []client.Object{unowned}, wantLeft: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var requests []client.DeleteOptions
			counted := interceptor.Funcs{Delete: func(ctx context.Context, stored client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				requests = append(requests, *(&client.DeleteOptions{}).ApplyOptions(options))
				return stored.Delete(ctx, object, options...)
			}}
			reconciler := testReconciler(t, counted, test.objects...)
			found := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}}
			g.Expect(reconciler.removeBudget(t.Context(), storedMemcached(), found)).To(Succeed())
			err := reconciler.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "sessions"}, found)
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			g.Expect(err == nil).To(Equal(test.wantLeft), "see removeBudget in children.go")
			if test.wantLeft {
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
