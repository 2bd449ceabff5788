package controller_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/controller"
	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/manager"
	"example.com/operator-workshop/operatortest"
	// +kubebuilder:scaffold:imports
)

var (
	scheme  = newScheme()
	cluster = &operatortest.Cluster{CRDs: operator.CRDs, Scheme: scheme}
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Guestbook")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webappv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
	return scheme
}

// operator describes the stage to the test kit.
var operator = operatortest.Operator{
	CRDs:           []string{"../../config/crd/bases"},
	Samples:        "../../config/samples",
	InvalidSamples: "../../config/samples/invalid",
	Sample:         "../../config/samples/webapp_v1_guestbook_full.yaml",
	Roles:          []string{"../../config/rbac/role.yaml", "../../config/rbac/leader_election_role.yaml"},
	Run:            runForKit,
	Prepare:        makeSettings,
	Children: []operatortest.Child{{
		Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Drift: map[string]string{
			"scaled by hand":        `{"spec":{"replicas":7}}`,
			"another image":         `{"spec":{"template":{"spec":{"containers":[{"name":"page","image":"somebody/else:1"}]}}}}`,
			"a label of ours taken": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			"privileges asked for":  `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`,
			"pods of old settings":  `{"spec":{"template":{"metadata":{"annotations":{"webapp.my.domain/revision":"old"}}}}}`,
		},
		Foreign: map[string]string{
			"pods restarted by kubectl": `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}}}}}`,
			"a longer deadline":         `{"spec":{"progressDeadlineSeconds":900}}`,
		},
	}, {
		Kind: corev1.SchemeGroupVersion.WithKind("Service"),
		Drift: map[string]string{
			"opened to the outside": `{"spec":{"type":"NodePort"}}`,
			"no pods behind it":     `{"spec":{"selector":{"app.kubernetes.io/instance":"nobody"}}}`,
			"another target":        `{"spec":{"ports":[{"name":"http","port":80,"targetPort":1}]}}`,
		},
		Foreign: map[string]string{
			"addresses of pods that are not ready": `{"spec":{"publishNotReadyAddresses":true}}`,
		},
	}},
	// The Deployment, the Service, and a status for each number of its two pods that are ready.
	MaxWrites: 5,
	Values: map[string][]any{
		"spec.configMapName": {"page-settings", "other-settings"},
	},
	Unmeetable: []operatortest.Unmeetable{{
		Name:  "settings do not exist",
		Patch: `{"spec":{"configMapName":"missing"}}`,
	}},
	Normalize: hidePodNames,
}

// hidePodNames puts the number of pods in place of their names, which are made at random.
func hidePodNames(object *unstructured.Unstructured) {
	status, found := object.Object["status"].(map[string]any)
	if !found || object.GetKind() != "Guestbook" {
		return
	}
	if _, found := status["active"]; found {
		status["active"] = "a pod"
	}
	if standby, found := status["standby"].([]any); found {
		status["standby"] = int64(len(standby))
	}
}

// makeSettings creates the ConfigMaps that Guestbooks in these tests refer to.
func makeSettings(ctx context.Context, writer client.Client, namespace string) error {
	for _, name := range []string{"page-settings", "other-settings"} {
		settings := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string]string{"index.html.template": "Sign with your ${GUESTBOOK_ALIAS}: " + name},
		}
		if err := writer.Create(ctx, settings); err != nil {
			return err
		}
	}
	return nil
}

// runForKit translates the kit's wishes into the manager's options.
func runForKit(ctx context.Context, config *rest.Config, wishes operatortest.RunOptions) error {
	options := manager.Default()
	options.Namespaces = []string{wishes.Namespace}
	options.HealthProbeBindAddress = "0"
	if wishes.Resync > 0 {
		options.ResyncPeriod = wishes.Resync
	}
	setup := options.ForManager(ctx, scheme)
	setup.Logger = GinkgoLogr
	setup.Controller.SkipNameValidation = new(true) // controller-runtime wants one controller of a name in a process; here are many
	if election := wishes.LeaderElection; election != nil {
		setup.LeaderElection, setup.LeaderElectionNamespace = true, election.Namespace
		setup.LeaseDuration, setup.RenewDeadline, setup.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
	}
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
	return mgr.Start(ctx)
}

var _ = Describe("the shared tests", func() {
	operatortest.DescribeSchema(operator, cluster)
	operatortest.DescribeBehaviours(operator, cluster)
})
