//workshop:given 3.3a

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/controller"
	"example.com/operator-workshop/manager"
)

const (
	// specTimeout bounds each spec. Most specs take about a second.
	specTimeout = time.Minute
	// convergeTimeout bounds how long the controller and the cluster may take for one change.
	convergeTimeout = 20 * time.Second
	pollInterval    = 20 * time.Millisecond
	// quietTime is how long a spec checks that something does not happen.
	quietTime = 400 * time.Millisecond

	revisionAnnotation = "webapp.my.domain/revision"
)

// testOptions returns options for a manager that watches some namespaces, and starts no servers.
func testOptions(namespaces ...string) manager.Options {
	options := manager.Default()
	options.Namespaces = namespaces
	options.HealthProbeBindAddress = "0"
	return options
}

// managerOptions completes the options in the same way as cmd/main.go.
func managerOptions(ctx context.Context, options manager.Options) ctrl.Options {
	return options.ForManager(ctx, ctrl.Options{
		Scheme:           scheme,
		LeaderElectionID: "guestbook.my.domain",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	})
}

// runManager runs the controller as cmd/main.go does, until the context is done.
func runManager(ctx context.Context, config *rest.Config, setup ctrl.Options) error {
	setup.Logger = ctrl.LoggerFrom(ctx)             // the test kit's logger if ctx has it, otherwise the suite's
	setup.Controller.SkipNameValidation = new(true) // controller-runtime allows each name once in a process, but the specs start many controllers
	mgr, err := ctrl.NewManager(config, setup)
	if err != nil {
		return err
	}
	reconciler := &controller.GuestbookReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("guestbook-controller"),
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := manager.AddProbes(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// startManager runs a manager until the returned function is called, or else until the spec ends.
func startManager(config *rest.Config, options manager.Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runManager(ctx, config, managerOptions(ctx, options)) }()
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
	return stop
}

// newSettings returns a ConfigMap that does not exist yet.
func newSettings(namespace, name, page string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"index.html.template": page + ": sign with your ${GUESTBOOK_ALIAS}"},
	}
}

// newGuestbook returns a valid Guestbook that does not exist yet.
func newGuestbook(namespace, name string, size int32) *webappv1.Guestbook {
	return &webappv1.Guestbook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       webappv1.GuestbookSpec{Size: size, ConfigMapName: "page-settings"},
	}
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(cluster.Client.Create(ctx, object)).To(Succeed())
	}
}

func changePage(ctx context.Context, settings *corev1.ConfigMap, page string) {
	GinkgoHelper()
	change := client.MergeFrom(settings.DeepCopy())
	settings.Data = newSettings("", "", page).Data
	Expect(cluster.Client.Patch(ctx, settings, change)).To(Succeed())
}

// expectReason waits until the condition Ready has the reason and describes the Guestbook's current generation.
func expectReason(ctx context.Context, guestbook *webappv1.Guestbook, reason string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		ready := readyCondition(ctx, g, guestbook)
		g.Expect(ready).NotTo(BeNil(), "Guestbook %s has no condition Ready yet, see updateStatus in guestbook_controller.go", guestbook.Name)
		g.Expect(ready.Reason).To(Equal(reason), "Ready is %s: %s", ready.Status, ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(guestbook.Generation))
		g.Expect(guestbook.Status.ObservedGeneration).To(Equal(guestbook.Generation))
	})
}

func readyCondition(ctx context.Context, g Gomega, guestbook *webappv1.Guestbook) *metav1.Condition {
	g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
	return meta.FindStatusCondition(guestbook.Status.Conditions, webappv1.ConditionReady)
}

func eventually(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Eventually(expectations).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}

func consistently(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Consistently(expectations).WithContext(ctx).WithTimeout(quietTime).WithPolling(pollInterval).Should(Succeed())
}

// podsOf returns the pods that the selector in the Guestbook's status finds, without those that are terminating.
func podsOf(ctx context.Context, g Gomega, guestbook *webappv1.Guestbook) []corev1.Pod {
	selector, err := labels.Parse(guestbook.Status.Selector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.Empty()).To(BeFalse(), "status.selector must not be empty: autoscalers find the pods by it")
	pods := &corev1.PodList{}
	g.Expect(cluster.Client.List(ctx, pods, client.InNamespace(guestbook.Namespace), client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// named returns the names of the pods in the Guestbook's status, the active one first.
func named(guestbook *webappv1.Guestbook) []string {
	if guestbook.Status.Active == "" {
		return guestbook.Status.Standby
	}
	return append([]string{guestbook.Status.Active}, guestbook.Status.Standby...)
}

func getDeployment(ctx context.Context, g Gomega, guestbook *webappv1.Guestbook) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(guestbook), deployment)).To(Succeed())
	return deployment
}

// revisionOf returns the revision that the Guestbook's pods should have.
func revisionOf(ctx context.Context, g Gomega, guestbook *webappv1.Guestbook) string {
	return getDeployment(ctx, g, guestbook).Spec.Template.Annotations[revisionAnnotation]
}

// expectEvents waits until the Events about the Guestbook are exactly those given, such as "Warning Refused".
func expectEvents(ctx context.Context, guestbook *webappv1.Guestbook, want ...string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(eventsOf(ctx, g, guestbook)).To(ConsistOf(want), "see announce in guestbook_controller.go")
	})
}

func eventsOf(ctx context.Context, g Gomega, guestbook *webappv1.Guestbook) []string {
	list := &eventsv1.EventList{}
	g.Expect(cluster.Client.List(ctx, list, client.InNamespace(guestbook.Namespace))).To(Succeed())
	var found []string
	for _, event := range list.Items {
		if event.Regarding.UID != guestbook.UID {
			continue
		}
		found = append(found, fmt.Sprintf("%s %s", event.Type, event.Reason))
		if event.Series != nil {
			found = append(found, fmt.Sprintf("%s, %d times", event.Reason, event.Series.Count))
		}
	}
	return found
}

// forbid creates a quota that allows no new objects of the forbidden resource in the namespace of probe, and waits
// until the quota refuses probe, which must be such an object.
func forbid(ctx context.Context, name string, forbidden corev1.ResourceName, probe client.Object) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: probe.GetNamespace(), Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{forbidden: resource.MustParse("0")}},
	}
	create(ctx, quota)
	eventually(ctx, func(g Gomega) {
		err := cluster.Client.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll)
		g.Expect(err).To(MatchError(ContainSubstring("exceeded quota")), "the quota is not in effect yet")
	})
	return quota
}
