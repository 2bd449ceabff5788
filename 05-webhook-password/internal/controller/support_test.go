package controller_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/manager"
)

const (
	// specTimeout bounds each spec. Most specs take about a second.
	specTimeout = time.Minute
	// convergeTimeout bounds how long the operator and the cluster may take for one change.
	convergeTimeout = 20 * time.Second
	pollInterval    = 20 * time.Millisecond
	// quietTime is how long a spec waits to see that something does not happen.
	quietTime = 400 * time.Millisecond

	// withoutWebhooksLabel marks the namespaces that the admission webhooks skip, see exemptNamespaces.
	withoutWebhooksLabel = "test.example.com/without-webhooks"
	// blockingFinalizer keeps a deleted object until the spec removes the finalizer.
	blockingFinalizer = "test.example.com/hold"
)

// testOptions returns options for a manager that watches these namespaces, and starts no servers.
func testOptions(namespaces ...string) manager.Options {
	options := manager.Default()
	options.Namespaces = namespaces
	options.HealthProbeBindAddress = "0"
	return options
}

// runManager runs the operator as cmd/main.go does, but without webhooks, until the context is done.
func runManager(ctx context.Context, config *rest.Config, setup ctrl.Options, options manager.Options, now clock.PassiveClock) error {
	setup.Logger = ctrl.LoggerFrom(ctx)             // the test kit's logger or, without one, the suite's
	setup.Controller.SkipNameValidation = new(true) // controller-runtime allows each name only once in a process, but the specs start many controllers
	mgr, err := ctrl.NewManager(config, setup)
	if err != nil {
		return err
	}
	reconciler := &controller.PasswordReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("password-operator"),
		Clock:     now,
	}
	if err := reconciler.SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles}); err != nil {
		return err
	}
	if err := manager.AddProbes(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// startManager runs a manager until the returned function is called, or until the spec ends.
func startManager(config *rest.Config, options manager.Options) (stop func()) {
	return startManagerAt(clock.RealClock{}, config, options)
}

// startManagerAt is startManager with a clock of your choice.
func startManagerAt(now clock.PassiveClock, config *rest.Config, options manager.Options) (stop func()) {
	return start(now, config, managerOptions(context.Background(), options), options)
}

func start(now clock.PassiveClock, config *rest.Config, setup ctrl.Options, options manager.Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runManager(ctx, config, setup, options, now) }()
	stopped := false
	stop = func() {
		GinkgoHelper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		var err error
		Eventually(ended).WithTimeout(convergeTimeout).Should(Receive(&err), "the manager should end when it is told to stop")
		Expect(err).NotTo(HaveOccurred())
	}
	DeferCleanup(stop)
	return stop
}

// namespaceWithoutWebhooks creates a namespace that the admission webhooks skip, as if they were switched off.
func namespaceWithoutWebhooks(ctx context.Context) string {
	GinkgoHelper()
	namespace := cluster.Namespace(ctx)
	patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, `{"metadata":{"labels":{%q:""}}}`, withoutWebhooksLabel)
	eventually(ctx, func(g Gomega) {
		g.Expect(cluster.Client.Create(ctx, newImpossible(namespace, "probe"), client.DryRunAll)).To(Succeed(), "the API server has not noticed the label yet")
	})
	return namespace
}

// newPassword returns a Password with a name but no spec, which the API server accepts.
func newPassword(namespace, name string) *secretv1.Password {
	return &secretv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// newImpossible returns a Password with a policy that no password can meet.
func newImpossible(namespace, name string) *secretv1.Password {
	password := newPassword(namespace, name)
	password.Spec.Policy.Length, password.Spec.Policy.Repeat = 128, secretv1.RepeatForbidden
	return password
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

// nudge makes the operator reconcile the Password once more.
func nudge(ctx context.Context, password *secretv1.Password) {
	GinkgoHelper()
	patch(ctx, password, `{"metadata":{"annotations":{"test.example.com/nudge":%q}}}`, time.Now().Format(time.RFC3339Nano))
}

func eventually(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Eventually(expectations).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}

func consistently(ctx context.Context, expectations func(Gomega)) {
	GinkgoHelper()
	Consistently(expectations).WithContext(ctx).WithTimeout(quietTime).WithPolling(pollInterval).Should(Succeed())
}

// expectState waits until the status reports a state and a reason, such as "Failed NameTaken", for the Password's
// current generation.
func expectState(ctx context.Context, password *secretv1.Password, want string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, password)).To(BeTrue())
		g.Expect(stateOf(password)).To(Equal(want), "see newStatus in status.go")
		g.Expect(password.Status.ObservedGeneration).To(Equal(password.Generation))
		g.Expect(password.Status.Conditions).To(HaveEach(HaveField("ObservedGeneration", password.Generation)))
	})
}

// stateOf returns a Password's state and, after a space, the reason of its condition Ready if it has that condition.
func stateOf(password *secretv1.Password) string {
	ready := meta.FindStatusCondition(password.Status.Conditions, secretv1.ConditionReady)
	if ready == nil {
		return password.Status.State
	}
	return password.Status.State + " " + ready.Reason
}

// problemOf returns the message of the condition Ready.
func problemOf(password *secretv1.Password) string {
	return meta.FindStatusCondition(password.Status.Conditions, secretv1.ConditionReady).Message
}

// expectReady waits until the Password has its Secret and the status describes it, and returns the Secret.
func expectReady(ctx context.Context, password *secretv1.Password) *corev1.Secret {
	GinkgoHelper()
	return expectReadyAgain(ctx, password, nil)
}

// expectReadyAgain is like expectReady, but also waits until the password differs from the one in before.
func expectReadyAgain(ctx context.Context, password *secretv1.Password, before *corev1.Secret) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, password)).To(BeTrue())
		g.Expect(stateOf(password)).To(Equal("Ready Generated"), "%s: %s", password.Name, asJSON(password.Status))
		g.Expect(password.Status.ObservedGeneration).To(Equal(password.Generation))
		secret = getSecret(ctx, g, password.Namespace, password.Status.SecretName)
		g.Expect(metav1.IsControlledBy(secret, password)).To(BeTrue())
		g.Expect(secret.Annotations).To(HaveKeyWithValue("secret.example.com/fingerprint", password.Status.Fingerprint))
		g.Expect(secret.Data["password"]).To(HaveLen(int(password.Spec.Policy.Length)))
		if before != nil {
			g.Expect(passwordIn(secret)).NotTo(Equal(passwordIn(before)), "the Secret still has the former password, see reasonToGenerate in signature.go")
		}
	})
	return secret
}

func getSecret(ctx context.Context, g Gomega, namespace, name string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	g.Expect(exists(ctx, g, secret)).To(BeTrue(), "there is no Secret %q", name)
	return secret
}

func passwordIn(secret *corev1.Secret) string { return string(secret.Data["password"]) }

// exists fetches the object, and reports whether the API server has it.
func exists(ctx context.Context, g Gomega, object client.Object) bool {
	err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// expectGone waits until the object is gone from the API server.
func expectGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, object)).To(BeFalse(), "%T %s is still there, with the finalizers %q", object, object.GetName(), object.GetFinalizers())
	})
}

// expectEvents waits until the events about the Password are exactly those in want, such as "Warning Edited". An event
// that is created twice is listed twice. A series adds an entry such as "Edited, 2 times".
func expectEvents(ctx context.Context, password *secretv1.Password, want ...string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(eventsOf(ctx, g, password)).To(ConsistOf(want), "see announceSecret in secret.go, announceFailure in status.go")
	})
}

func eventsOf(ctx context.Context, g Gomega, password *secretv1.Password) []string {
	list := &eventsv1.EventList{}
	g.Expect(cluster.Client.List(ctx, list, client.InNamespace(password.Namespace))).To(Succeed())
	var found []string
	for _, event := range list.Items {
		if event.Regarding.UID != password.UID {
			continue
		}
		found = append(found, fmt.Sprintf("%s %s", event.Type, event.Reason))
		if event.Series != nil {
			found = append(found, fmt.Sprintf("%s, %d times", event.Reason, event.Series.Count))
		}
	}
	return found
}
