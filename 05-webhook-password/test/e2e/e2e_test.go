//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the operator with certificates of its own", Label("self-managed"), Ordered, func() {
	describeOperator("self-managed", nothingNeeded, expireCertificate)
})

var _ = Describe("the operator with cert-manager", Label("cert-manager"), Ordered, func() {
	describeOperator("cert-manager", needCertManager, deleteCertificate)
})

// describeOperator has the specs for a way to deploy. They build on each other: they follow the operator from
// its arrival to its end. need may skip them; spoil makes the certificate of the webhooks one that must be replaced.
func describeOperator(certs string, need, spoil func(context.Context)) {
	BeforeAll(func(ctx SpecContext) {
		need(ctx)
		DeferCleanup(func(ctx SpecContext) {
			runMake(ctx, "undeploy", certs)
			kubectl(ctx, "delete", "namespace", passwordNamespace, "--ignore-not-found")
			kubectl(ctx, "delete", "clusterrolebinding", "password-e2e-metrics-reader", "--ignore-not-found")
		}, NodeTimeout(specTimeout))
		runMake(ctx, "deploy", certs)
		kubectl(ctx, "create", "namespace", passwordNamespace)
	}, NodeTimeout(specTimeout))

	AfterEach(reportCluster, NodeTimeout(time.Minute))

	It("runs in two pods of a namespace that takes restricted ones only", func(ctx SpecContext) {
		waitForRollout(ctx)
		Expect(managerPods(ctx)).To(HaveLen(2))

		By("trying a pod that may do too much")
		_, err := tryKubectl(ctx, "run", "unrestricted", "--image=password-operator:dev", "--privileged", "--dry-run=server", "--namespace="+namespace)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
	}, SpecTimeout(specTimeout))

	It("works in one of the pods, the holder of the Lease", func(ctx SpecContext) {
		Eventually(leader).WithContext(ctx).Should(BeElementOf(managerPods(ctx)))
	}, SpecTimeout(specTimeout))

	It("serves its metrics over TLS to those whom the cluster allows it", func(ctx SpecContext) {
		stranger, reader := tokenOf(ctx, "stranger"), tokenOf(ctx, "metrics-reader")
		kubectl(ctx, "create", "clusterrolebinding", "password-e2e-metrics-reader",
			"--clusterrole=password-operator-metrics-reader", "--serviceaccount="+passwordNamespace+":metrics-reader")
		status := func(scheme, token string) (int, error) {
			status, _, err := getMetrics(ctx, scheme, token)
			return status, err
		}
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		Eventually(status).WithArguments("http", reader).Should(Equal(http.StatusBadRequest), "nothing is served without TLS")
		Eventually(status).WithArguments("https", "").Should(Equal(http.StatusUnauthorized), "nothing is served to those who don't say who they are")
		Eventually(status).WithArguments("https", stranger).Should(Equal(http.StatusForbidden), "nothing is served to those who have no role for it")
		Eventually(status).WithArguments("https", reader).Should(Equal(http.StatusOK), "the role password-operator-metrics-reader allows it")
		_, metrics, err := getMetrics(ctx, "https", reader)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).To(ContainSubstring("controller_runtime_webhook_requests_total"))
	}, SpecTimeout(specTimeout))

	It("gives each of the sample Passwords its Secret", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--kustomize=config/samples", "--namespace="+passwordNamespace)
		waitUntilReady(ctx)

		secrets := kubectl(ctx, "get", "secrets", "--namespace="+passwordNamespace, "--selector=app.kubernetes.io/managed-by=password-operator", "--output=name")
		Expect(strings.Fields(secrets)).To(ConsistOf("secret/password-sample", "secret/database-login", "secret/former-password"))
	}, SpecTimeout(specTimeout))

	// +kubebuilder:scaffold:e2e-webhooks-checks

	describeWebhooks()

	It("gets its certificate renewed, and refuses and converts meanwhile", func(ctx SpecContext) {
		before := storedCertificate(ctx)
		spoil(ctx)

		Eventually(storedCertificate).WithContext(ctx).Should(beRenewed(before), "the Secret webhook-server-cert holds a new certificate")
		for _, pod := range managerPods(ctx) {
			Eventually(func(g Gomega, ctx context.Context) {
				expectService(ctx) // always, so a failure ends the spec
				g.Expect(servedCertificate(ctx, pod)).To(Equal(storedCertificate(ctx)), "the pod %s serves the new certificate", pod)
			}).WithContext(ctx).WithTimeout(4 * time.Minute).Should(Succeed())
		}
	}, SpecTimeout(2*specTimeout))

	It("goes on in the other pod when the working one is deleted", func(ctx SpecContext) {
		former := leader(ctx)
		kubectl(ctx, "delete", "pod", former, "--namespace="+namespace)
		kubectl(ctx, "delete", "secret", "password-sample", "--namespace="+passwordNamespace)

		Eventually(leader).WithContext(ctx).ShouldNot(BeElementOf("", former))
		Eventually(tryKubectl).WithContext(ctx).WithArguments("get", "secret/password-sample", "--namespace="+passwordNamespace).
			Should(ContainSubstring("password-sample"), "the new leader makes the Secret again")
	}, SpecTimeout(specTimeout))

	It("leaves nothing behind", func(ctx SpecContext) {
		runMake(ctx, "undeploy", certs)

		Expect(deployed(ctx)).To(BeEmpty(), "all that deploy made is gone")
		Expect(kubectl(ctx, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--selector=app.kubernetes.io/name=password-operator", "--output=name")).
			To(BeEmpty(), "nobody has the API server ask the operator")
		Eventually(kubectl).WithContext(ctx).WithArguments("get", "secrets", "--namespace="+passwordNamespace,
			"--selector=app.kubernetes.io/managed-by=password-operator", "--output=name").Should(BeEmpty(), "the passwords are gone")
	}, SpecTimeout(specTimeout))
}
