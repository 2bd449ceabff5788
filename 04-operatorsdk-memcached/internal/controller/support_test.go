package controller_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/manager"
)

const (
	// specTimeout bounds each spec. Most specs take about a second.
	specTimeout = time.Minute
	// convergeTimeout bounds how long the operator and the cluster may take for one change.
	convergeTimeout = 20 * time.Second
	pollInterval    = 20 * time.Millisecond
	// quietTime is how long a spec checks that something does not happen.
	quietTime = 400 * time.Millisecond

	revisionAnnotation = "cache.example.com/revision"
)

// testOptions returns options for a manager that watches the namespaces, and starts no servers.
func testOptions(namespaces ...string) manager.Options {
	options := manager.Default()
	options.Namespaces = namespaces
	options.HealthProbeBindAddress = "0"
	return options
}

// managerOptions converts the options to controller-runtime's, as cmd/main.go does.
func managerOptions(ctx context.Context, options manager.Options) ctrl.Options {
	return options.ForManager(ctx, ctrl.Options{
		Scheme:           scheme,
		LeaderElectionID: "memcached.example.com",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	})
}

// runManager runs the operator as cmd/main.go does, until the context is done.
func runManager(ctx context.Context, config *rest.Config, setup ctrl.Options, image string) error {
	setup.Logger = ctrl.LoggerFrom(ctx)             // the test kit's logger if it has set one, otherwise the suite's
	setup.Controller.SkipNameValidation = new(true) // controller-runtime allows each controller name only once in a process, but the specs start many managers
	mgr, err := ctrl.NewManager(config, setup)
	if err != nil {
		return err
	}
	reconciler := &controller.MemcachedReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("memcached-operator"),
		Image:     image,
		Now:       time.Now,
	}
	if err := reconciler.SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: setup.Controller.MaxConcurrentReconciles}); err != nil {
		return err
	}
	if err := manager.AddProbes(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// startManager runs a manager until the returned function is called, or until the spec ends. If the manager is still
// running then, the cleanup first deletes the spec's Memcacheds, so that the manager removes their finalizers.
func startManager(config *rest.Config, options manager.Options) (stop func()) {
	return startManagerWith(controller.DefaultImage, config, options)
}

// startManagerWith does the same as startManager, but with the given default image.
func startManagerWith(image string, config *rest.Config, options manager.Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runManager(ctx, config, managerOptions(ctx, options), image) }()
	stopped := false
	stop = func() {
		GinkgoHelper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		var err error
		Eventually(ended).WithTimeout(convergeTimeout).Should(Receive(&err), "the manager must end after the signal to stop")
		Expect(err).NotTo(HaveOccurred())
	}
	DeferCleanup(stop)
	DeferCleanup(func(ctx SpecContext) {
		if !stopped {
			deleteMemcacheds(ctx, options.Namespaces)
		}
	}, NodeTimeout(specTimeout))
	return stop
}

func deleteMemcacheds(ctx context.Context, namespaces []string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Expect(cluster.Client.DeleteAllOf(ctx, &cachev1alpha1.Memcached{}, client.InNamespace(namespace))).To(Succeed())
		eventually(ctx, func(g Gomega) {
			left := &cachev1alpha1.MemcachedList{}
			g.Expect(cluster.Client.List(ctx, left, client.InNamespace(namespace))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty(), "see finalize in finalizer.go")
		})
	}
}

// newMemcached returns a valid Memcached that does not exist yet.
func newMemcached(namespace, name string, size int32) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       cachev1alpha1.MemcachedSpec{Size: size},
	}
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(cluster.Client.Create(ctx, object)).To(Succeed())
	}
}

// patch changes an object with a merge patch.
func patch(ctx context.Context, object client.Object, format string, values ...any) {
	GinkgoHelper()
	change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, values...))
	Expect(cluster.Client.Patch(ctx, object, change)).To(Succeed())
}

func eventually(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Eventually(expectations).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}

func consistently(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Consistently(expectations).WithContext(ctx).WithTimeout(quietTime).WithPolling(pollInterval).Should(Succeed())
}

// conditions holds the status and the reason of each condition of a Memcached, such as "True EnoughPods".
type conditions struct{ available, progressing, degraded string }

func newConditions(available, progressing, degraded string) conditions {
	return conditions{
		available:   available,
		progressing: progressing, //workshop:step 4.12d
		degraded:    degraded,    //workshop:step 4.12b
	}
}

// The states that most specs expect.
var (
	converged = newConditions("True EnoughPods", "False RolledOut", "False AsExpected")
	starting  = newConditions("False TooFewPods", "True RollingOut", "False AsExpected")
	rolling   = newConditions("True EnoughPods", "True RollingOut", "False AsExpected")
)

// broken returns the conditions of a Memcached that is degraded for the given reason.
func broken(available, reason string) conditions {
	return newConditions(available, "False "+reason, "True "+reason)
}

// expectConditions waits until the conditions are those given and describe the Memcached's current generation.
func expectConditions(ctx context.Context, memcached *cachev1alpha1.Memcached, want conditions) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(conditionsOf(ctx, g, memcached)).To(Equal(want), "see conditions in status.go")
		g.Expect(memcached.Status.Conditions).To(HaveEach(HaveField("ObservedGeneration", memcached.Generation)))
		g.Expect(memcached.Status.ObservedGeneration).To(Equal(memcached.Generation))
	})
}

// conditionsOf fetches the Memcached, and returns its conditions.
func conditionsOf(ctx context.Context, g Gomega, memcached *cachev1alpha1.Memcached) conditions {
	g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
	return summarize(memcached)
}

func summarize(memcached *cachev1alpha1.Memcached) conditions {
	words := func(kind string) string {
		if condition := meta.FindStatusCondition(memcached.Status.Conditions, kind); condition != nil {
			return fmt.Sprintf("%s %s", condition.Status, condition.Reason)
		}
		return ""
	}
	return newConditions(words(cachev1alpha1.ConditionAvailable), words(cachev1alpha1.ConditionProgressing), words(cachev1alpha1.ConditionDegraded))
}

// problemOf returns the message of the condition Degraded.
func problemOf(memcached *cachev1alpha1.Memcached) string {
	return meta.FindStatusCondition(memcached.Status.Conditions, cachev1alpha1.ConditionDegraded).Message
}

// nameOf returns the namespace and the name that all of a Memcached's children share.
func nameOf(memcached *cachev1alpha1.Memcached) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}
}

func getDeployment(ctx context.Context, g Gomega, memcached *cachev1alpha1.Memcached) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)).To(Succeed())
	return deployment
}

// revisionOf returns the revision that the Memcached's pods should have.
func revisionOf(ctx context.Context, g Gomega, memcached *cachev1alpha1.Memcached) string {
	return getDeployment(ctx, g, memcached).Spec.Template.Annotations[revisionAnnotation]
}

// podsOf returns the Memcached's pods that are not terminating.
func podsOf(ctx context.Context, g Gomega, memcached *cachev1alpha1.Memcached) []corev1.Pod {
	pods := &corev1.PodList{}
	g.Expect(cluster.Client.List(ctx, pods, client.InNamespace(memcached.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": memcached.Name})).To(Succeed())
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// exists fetches the object, and reports whether the API server has it.
func exists(ctx context.Context, g Gomega, object client.Object) bool {
	err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

func expectGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, object)).To(BeFalse(), "%T %s is still there, with the finalizers %q", object, object.GetName(), object.GetFinalizers())
	})
}

// expectEvents waits until the Events about the Memcached are exactly those given, such as "Warning Refused". An Event
// that is created twice is listed twice. A series adds an entry such as "Refused, 2 times".
func expectEvents(ctx context.Context, memcached *cachev1alpha1.Memcached, want ...string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(eventsOf(ctx, g, memcached)).To(ConsistOf(want), "see announce in memcached_controller.go, finalize and deleteDeployment in finalizer.go")
	})
}

func eventsOf(ctx context.Context, g Gomega, memcached *cachev1alpha1.Memcached) []string {
	list := &eventsv1.EventList{}
	g.Expect(cluster.Client.List(ctx, list, client.InNamespace(memcached.Namespace))).To(Succeed())
	var found []string
	for _, event := range list.Items {
		if event.Regarding.UID != memcached.UID {
			continue
		}
		found = append(found, fmt.Sprintf("%s %s", event.Type, event.Reason))
		if event.Series != nil {
			found = append(found, fmt.Sprintf("%s, %d times", event.Reason, event.Series.Count))
		}
	}
	return found
}
