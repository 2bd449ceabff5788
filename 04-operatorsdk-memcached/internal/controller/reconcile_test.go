package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// testReconciler returns a reconciler with an in-memory client, which contains the objects. The functions in faults
// replace the client's methods, for example to make a call fail, but not those of the APIReader.
func testReconciler(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *MemcachedReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(cachev1alpha1.AddToScheme(scheme)).To(Succeed())
	if faults.Create == nil {
		faults.Create = createWithUID
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&cachev1alpha1.Memcached{}).WithObjects(objects...).Build()
	return &MemcachedReconciler{
		Client: interceptor.NewClient(stored, faults), APIReader: stored, Scheme: scheme,
		Recorder: events.NewFakeRecorder(100), Image: DefaultImage, Now: func() time.Time { return noon },
	}
}

// createWithUID creates the object with a UID. The in-memory client would create it without one.
func createWithUID(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
	object.SetUID("uid-of-child")
	return writer.Create(ctx, object, options...)
}

// failingDeletion makes every deletion fail with the error.
func failingDeletion(err error) interceptor.Funcs {
	return interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err }}
}

// refusingDeployments makes the creation of a Deployment fail with the error.
func refusingDeployments(err error) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
			return err
		}
		return createWithUID(ctx, writer, object, options...)
	}}
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// newMemcached returns storedMemcached without its resource version, so that the in-memory client sets one.
func newMemcached() *cachev1alpha1.Memcached {
	memcached := storedMemcached()
	memcached.ResourceVersion = ""
	return memcached
}

// pausesBetween reports how long the queue delays a request after each failure.
type pausesBetween struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	pauses chan time.Duration
}

func (p pausesBetween) When(request reconcile.Request) time.Duration {
	pause := p.TypedRateLimiter.When(request)
	select {
	case p.pauses <- pause:
	default:
	}
	return pause
}

func TestConflictIsRetriedWithBackoffAndCounted(t *testing.T) {
	g := NewWithT(t)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "cache.example.com", Resource: "memcacheds"}, "sessions", errors.New("changed"))
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return conflict
		},
	}, newMemcached())
	result, err := reconciler.Reconcile(t.Context(), requestFor(newMemcached()))
	g.Expect(result).To(BeZero())
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "see Reconcile in memcached_controller.go, found: %v", err)

	limiter := pausesBetween{workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), make(chan time.Duration, 4)}
	running, err := controller.NewUnmanaged("lasting-conflict", controller.Options{Reconciler: reconciler, RateLimiter: limiter, SkipNameValidation: new(true)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(running.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(requestFor(newMemcached()))
		return nil
	}))).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- running.Start(ctx) }()
	for _, pause := range []time.Duration{5, 10, 20, 40} {
		g.Eventually(limiter.pauses).WithTimeout(time.Minute).Should(Receive(Equal(pause*time.Millisecond)), "each pause must be twice the last one")
	}
	stop()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(countErrors(g, "lasting-conflict")).To(BeNumerically(">=", 4), "each failure must be counted, because alerts rely on this metric")
}

// countErrors returns how many calls to a controller's Reconcile have failed, according to controller-runtime's metric.
func countErrors(g Gomega, name string) float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == name {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestBlockedChildIsReported(t *testing.T) {
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "sessions", errors.New("quota"))
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		size    int32
		// wantReason is the reason of the condition Degraded, or "" if the status must not be written.
		wantReason string
		wantErr    error
	}{
		"the Deployment's name is taken": {size: 2, objects: []client.Object{conflicting}, wantReason: cachev1alpha1.ReasonNameTaken},
		"the Deployment is refused":      {size: 2, faults: refusingDeployments(forbidden), wantReason: cachev1alpha1.ReasonRefused, wantErr: forbidden},
		"the Deployment fails":           {size: 2, faults: refusingDeployments(outage), wantErr: outage},
		"the removal of the budget is refused": {
			size: 1, objects: []client.Object{ownedBudget()}, faults: failingDeletion(forbidden), wantReason: cachev1alpha1.ReasonRefused, wantErr: forbidden,
		},
		"the removal of the budget fails": {size: 1, objects: []client.Object{ownedBudget()}, faults: failingDeletion(outage), wantErr: outage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := newMemcached()
			memcached.Spec.Size = test.size
			reconciler := testReconciler(t, test.faults, append(test.objects, memcached)...)
			_, err := reconciler.Reconcile(t.Context(), requestFor(memcached))
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "a watch event will queue the Memcached again")
			} else {
				g.Expect(err).To(MatchError(test.wantErr))
			}
			g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
			if test.wantReason == "" {
				g.Expect(memcached.Status.Conditions).To(BeEmpty())
				return
			}
			g.Expect(memcached.Status.Conditions).To(ContainElement(And(HaveField("Type", cachev1alpha1.ConditionDegraded), HaveField("Reason", test.wantReason))))
		})
	}
}

// If the Deployment is blocked and another child fails, the status reports the blocker, and the queue retries the
// request.
func TestReconcileReturnsErrorsDespiteABlocker(t *testing.T) {
	g := NewWithT(t)
	outage := apierrors.NewInternalError(errors.New("etcd"))
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}}
	reconciler := testReconciler(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return outage },
	}, newMemcached(), conflicting)
	memcached := newMemcached()
	_, err := reconciler.Reconcile(t.Context(), requestFor(memcached))
	g.Expect(err).To(MatchError(outage))
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
	g.Expect(memcached.Status.Conditions).To(ContainElement(And(HaveField("Type", cachev1alpha1.ConditionDegraded), HaveField("Reason", cachev1alpha1.ReasonNameTaken))))
}

// If a rollout is complete, the Deployment doesn't report a pod without a node, because only rollouts have a deadline.
func TestReconcileRequeuesUntilAPodWithoutANodeCounts(t *testing.T) {
	g := NewWithT(t)
	memcached := newMemcached()
	pod := unscheduled(storedPod("sessions-1"), noon.Add(-time.Minute))
	pod.ResourceVersion = ""
	reconciler := testReconciler(t, interceptor.Funcs{}, memcached, &pod)
	now := noon
	reconciler.Now = func() time.Time { return now }
	for _, step := range []struct {
		degraded bool
		requeue  time.Duration
	}{{false, 4 * time.Minute}, {true, 0}} {
		result, err := reconciler.Reconcile(t.Context(), requestFor(memcached))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(memcached.Status.Conditions, cachev1alpha1.ConditionDegraded)).To(Equal(step.degraded), "a pod that has been unschedulable for five minutes must be reported, and not earlier, see problem in status.go")
		g.Expect(result.RequeueAfter).To(Equal(step.requeue), "no watch event announces that five minutes have passed, see requeueAfter in status.go")
		now = now.Add(result.RequeueAfter)
	}
}

func TestReconcileRequeuesUntilACrashNoLongerCounts(t *testing.T) {
	g := NewWithT(t)
	memcached := newMemcached()
	pod := crashed(storedPod("sessions-1"), 2, noon.Add(-4*time.Minute))
	pod.ResourceVersion = ""
	reconciler := testReconciler(t, interceptor.Funcs{}, memcached, &pod)
	now := noon
	reconciler.Now = func() time.Time { return now }
	isDegraded := func() bool {
		g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
		return meta.IsStatusConditionTrue(memcached.Status.Conditions, cachev1alpha1.ConditionDegraded)
	}

	result, err := reconciler.Reconcile(t.Context(), requestFor(memcached))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isDegraded()).To(BeTrue(), "a pod crashed recently, so Degraded must be True, see problem in status.go")
	g.Expect(result.RequeueAfter).To(Equal(6*time.Minute), "no watch event announces that ten minutes have passed, see requeueAfter in status.go")
	now = now.Add(result.RequeueAfter)
	result, err = reconciler.Reconcile(t.Context(), requestFor(memcached))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isDegraded()).To(BeFalse())
	g.Expect(result).To(BeZero(), "from now on, a watch event announces each change")
}
