package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// testReconciler uses an in-memory client that holds the objects and answers as faults say.
func testReconciler(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *GuestbookReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(webappv1.AddToScheme(scheme)).To(Succeed())
	writer := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&webappv1.Guestbook{}).WithObjects(objects...).WithInterceptorFuncs(faults).Build()
	return &GuestbookReconciler{Client: writer, Scheme: scheme, Recorder: events.NewFakeRecorder(100)}
}

// requestFor returns the request to reconcile an object.
func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// newGuestbook is storedGuestbook before the API server has stored it.
func newGuestbook() *webappv1.Guestbook {
	guestbook := storedGuestbook()
	guestbook.ResourceVersion = ""
	return guestbook
}

func newSettings() *corev1.ConfigMap {
	settings := storedSettings()
	settings.ResourceVersion, settings.ManagedFields = "", nil
	return settings
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

func TestConflictBacksOffAndCounts(t *testing.T) {
	g := NewWithT(t)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "webapp.my.domain", Resource: "guestbooks"}, "web", errors.New("changed"))
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return conflict
		},
	}, newGuestbook(), newSettings())
	result, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(result).To(BeZero())
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "see Reconcile in guestbook_controller.go, found: %v", err)

	limiter := pausesBetween{workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), make(chan time.Duration, 4)}
	running, err := controller.NewUnmanaged("lasting-conflict", controller.Options{Reconciler: reconciler, RateLimiter: limiter, SkipNameValidation: new(true)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(running.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(requestFor(newGuestbook()))
		return nil
	}))).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- running.Start(ctx) }()
	for _, pause := range []time.Duration{5, 10, 20, 40} {
		g.Eventually(limiter.pauses).WithTimeout(time.Minute).Should(Receive(Equal(pause*time.Millisecond)), "each pause is twice the last one")
	}
	stop()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(countErrors(g, "lasting-conflict")).To(BeNumerically(">=", 4), "alarms go by this metric")
}

// countErrors returns how many calls of Reconcile have failed, according to controller-runtime's metric.
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

func TestBlockedChildStopsNoOther(t *testing.T) {
	refusing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
				return err
			}
			return writer.Create(ctx, object, options...)
		}}
	}
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	unreadable := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isConfigMap := object.(*corev1.ConfigMap); isConfigMap {
				return err
			}
			return reader.Get(ctx, key, object, options...)
		}}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("quota"))
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		// wantReason is that of the condition Ready; "" for no status.
		wantReason string
		wantErr    error
	}{
		"the settings can't be read":     {faults: unreadable(outage), objects: []client.Object{newSettings()}, wantErr: outage},
		"the Deployment's name is taken": {objects: []client.Object{newSettings(), conflicting}, wantReason: webappv1.ReasonDeploymentTaken},
		"the Deployment is refused":      {faults: refusing(forbidden), objects: []client.Object{newSettings()}, wantReason: webappv1.ReasonRefused, wantErr: forbidden},
		"the Deployment fails":           {faults: refusing(outage), objects: []client.Object{newSettings()}, wantErr: outage},
		"there are no settings":          {wantReason: webappv1.ReasonConfigMapNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			guestbook := newGuestbook()
			reconciler := testReconciler(t, test.faults, append(test.objects, guestbook)...)
			_, err := reconciler.Reconcile(t.Context(), requestFor(guestbook))
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "a watch event tells when to look again")
			} else {
				g.Expect(err).To(MatchError(test.wantErr))
			}
			g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), &corev1.Service{})).To(Succeed(), "the Service has its own life, see applyChildren in children.go")
			g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
			if test.wantReason == "" {
				g.Expect(guestbook.Status.Conditions).To(BeEmpty())
				return
			}
			g.Expect(guestbook.Status.Conditions).To(ConsistOf(HaveField("Reason", test.wantReason)))
		})
	}
}

// If two things are wrong, the status reports the first, and the transient one is still retried.
func TestRetriesBesideABlocker(t *testing.T) {
	g := NewWithT(t)
	outage := apierrors.NewInternalError(errors.New("etcd"))
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	reconciler := testReconciler(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return outage },
	}, newGuestbook(), newSettings(), conflicting)
	guestbook := newGuestbook()
	_, err := reconciler.Reconcile(t.Context(), requestFor(guestbook))
	g.Expect(err).To(MatchError(outage))
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
	g.Expect(guestbook.Status.Conditions).To(ConsistOf(HaveField("Reason", webappv1.ReasonDeploymentTaken)))
}

func TestListPods(t *testing.T) {
	g := NewWithT(t)
	running, finished, other, elsewhere := storedPod("running", 0), storedPod("finished", 0), storedPod("other", 0), storedPod("elsewhere", 0)
	finished.Status.Phase = corev1.PodSucceeded
	other.Labels = map[string]string{instanceLabel: "other"}
	elsewhere.Namespace = "bank"
	var objects []client.Object
	for _, pod := range []*corev1.Pod{&running, &finished, &other, &elsewhere} {
		pod.ResourceVersion = ""
		objects = append(objects, pod)
	}
	pods, err := testReconciler(t, interceptor.Funcs{}, objects...).listPods(t.Context(), storedGuestbook())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods).To(ConsistOf(HaveField("Name", "running")), "see listPods in guestbook_controller.go")
}
