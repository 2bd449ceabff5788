//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/03-kubebuilder-guestbook/test/utils"
)

// The specs build on each other: they follow the manager from its arrival to its end.
var _ = Describe("the manager", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			runMake(ctx, "undeploy")
			kubectl(ctx, "delete", "namespace", guestbookNamespace, "--ignore-not-found")
			kubectl(ctx, "delete", "clusterrolebinding", "guestbook-e2e-metrics-reader", "--ignore-not-found")
		}, NodeTimeout(specTimeout))
		runMake(ctx, "deploy")
		kubectl(ctx, "create", "namespace", guestbookNamespace)
	}, NodeTimeout(specTimeout))

	AfterEach(reportCluster, NodeTimeout(time.Minute))

	It("runs in two pods of a namespace that takes restricted ones only", func(ctx SpecContext) {
		kubectl(ctx, "rollout", "status", "deployment/guestbook-controller-manager", "--namespace="+namespace, "--timeout=4m")
		Expect(managerPods(ctx)).To(HaveLen(2))

		By("trying a pod that may do too much")
		_, err := tryKubectl(ctx, "run", "unrestricted", "--image=guestbook-controller:dev", "--privileged", "--dry-run=server", "--namespace="+namespace)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
	}, SpecTimeout(specTimeout))

	It("works in one of the pods, the holder of the Lease", func(ctx SpecContext) {
		Eventually(leader).WithContext(ctx).Should(BeElementOf(managerPods(ctx)))
	}, SpecTimeout(specTimeout))

	It("serves its metrics over TLS to those whom the cluster allows it", func(ctx SpecContext) {
		stranger, reader := tokenOf(ctx, "stranger"), tokenOf(ctx, "metrics-reader")
		kubectl(ctx, "create", "clusterrolebinding", "guestbook-e2e-metrics-reader",
			"--clusterrole=guestbook-metrics-reader", "--serviceaccount="+guestbookNamespace+":metrics-reader")
		status := func(scheme, token string) (int, error) {
			status, _, err := getMetrics(ctx, scheme, token)
			return status, err
		}
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		Eventually(status).WithArguments("http", reader).Should(Equal(http.StatusBadRequest), "nothing is served without TLS")
		Eventually(status).WithArguments("https", "").Should(Equal(http.StatusUnauthorized), "nothing is served to those who don't say who they are")
		Eventually(status).WithArguments("https", stranger).Should(Equal(http.StatusForbidden), "nothing is served to those who have no role for it")
		Eventually(status).WithArguments("https", reader).Should(Equal(http.StatusOK), "the role guestbook-metrics-reader allows it")
		_, metrics, err := getMetrics(ctx, "https", reader)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).To(ContainSubstring("rest_client_requests_total"))
	}, SpecTimeout(specTimeout))

	It("brings the sample Guestbooks up", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--kustomize=config/samples", "--namespace="+guestbookNamespace)
		waitUntilReady(ctx)

		status := kubectl(ctx, "get", "guestbook/full-guestbook", "--namespace="+guestbookNamespace, "--output=jsonpath={.status.active} {.status.standby[*]}")
		Expect(strings.Fields(status)).To(ConsistOf(podsOf(ctx, "full-guestbook")), "the status names one pod as active and the other as standby")
		Eventually(page).WithContext(ctx).WithArguments("guestbook-sample").Should(ContainSubstring("Sign with: Name"))
		Eventually(page).WithContext(ctx).WithArguments("full-guestbook").Should(ContainSubstring("Sign with: Phone"))
	}, SpecTimeout(specTimeout))

	It("replaces the pods when their settings change", func(ctx SpecContext) {
		before := podsOf(ctx, "full-guestbook")
		kubectl(ctx, "patch", "configmap", "page-settings", "--namespace="+guestbookNamespace, "--type=merge",
			`--patch={"data":{"index.html.template":"New settings for: ${GUESTBOOK_ALIAS}"}}`)

		Eventually(page).WithContext(ctx).WithArguments("full-guestbook").Should(ContainSubstring("New settings for: Phone"))
		waitUntilReady(ctx)
		Expect(podsOf(ctx, "full-guestbook")).To(And(HaveLen(2), Not(ContainElements(before))))
	}, SpecTimeout(specTimeout))

	It("goes on in the other pod when the working one is deleted", func(ctx SpecContext) {
		former := leader(ctx)
		kubectl(ctx, "delete", "pod", former, "--namespace="+namespace)
		kubectl(ctx, "scale", "guestbook/guestbook-sample", "--replicas=2", "--namespace="+guestbookNamespace)

		Eventually(leader).WithContext(ctx).ShouldNot(BeElementOf("", former))
		kubectl(ctx, "wait", "guestbook/guestbook-sample", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=3m", "--namespace="+guestbookNamespace)
	}, SpecTimeout(specTimeout))

	// +kubebuilder:scaffold:e2e-webhooks-checks

	It("leaves nothing behind", func(ctx SpecContext) {
		runMake(ctx, "undeploy")

		Expect(kubectl(ctx, "get", "--kustomize=config/default", "--ignore-not-found", "--output=name")).To(BeEmpty(), "all that deploy made is gone")
		Eventually(kubectl).WithContext(ctx).WithArguments("get", "deployments,services,pods", "--namespace="+guestbookNamespace,
			"--selector=app.kubernetes.io/managed-by=guestbook-controller", "--output=name").Should(BeEmpty(), "all that the Guestbooks had is gone")
	}, SpecTimeout(specTimeout))
})

// managerPods are the names of the manager's pods, but for those that are ending.
func managerPods(ctx context.Context) []string {
	GinkgoHelper()
	return podsWith(ctx, namespace, "control-plane=controller-manager")
}

// podsOf are the names of a Guestbook's pods, but for those that are ending.
func podsOf(ctx context.Context, guestbook string) []string {
	GinkgoHelper()
	return podsWith(ctx, guestbookNamespace, "app.kubernetes.io/instance="+guestbook)
}

func podsWith(ctx context.Context, namespace, selector string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "pods", "--namespace="+namespace, "--selector="+selector,
		"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"))
}

// leader is the pod that holds the Lease, "" while none does. The holder's name begins with that of its pod.
func leader(ctx context.Context) string {
	holder, err := tryKubectl(ctx, "get", "lease/guestbook.my.domain", "--namespace="+namespace, "--output=jsonpath={.spec.holderIdentity}")
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

func waitUntilReady(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "wait", "guestbooks", "--all", "--for=condition=Ready", "--timeout=4m", "--namespace="+guestbookNamespace)
}

// page is what a Guestbook's Service serves. The API server passes the request on to a pod.
func page(ctx context.Context, guestbook string) (string, error) {
	return tryKubectl(ctx, "get", "--raw=/api/v1/namespaces/"+guestbookNamespace+"/services/"+guestbook+":80/proxy/")
}

// kubectl returns what the command prints, and fails the spec if the command fails.
func kubectl(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// tryKubectl is for commands that may fail.
func tryKubectl(ctx context.Context, arguments ...string) (string, error) {
	return utils.Run(exec.CommandContext(ctx, "kubectl", arguments...))
}

// runMake runs a target of the project's Makefile, on the cluster and with the image of the tests
// whatever was said to the make that may have started them.
func runMake(ctx context.Context, target string) {
	GinkgoHelper()
	_, err := utils.Run(exec.CommandContext(ctx, "make", target, "KUBECONFIG="+os.Getenv("KUBECONFIG"), "IMG="+os.Getenv("IMG")))
	Expect(err).NotTo(HaveOccurred())
}
