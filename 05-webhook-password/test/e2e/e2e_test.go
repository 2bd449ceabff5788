//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

var _ = Describe("the operator with certificates of its own", Label("self-managed"), Ordered, func() {
	describeOperator(password("self-managed"), expireCertificate)
})

var _ = Describe("the operator with cert-manager", Label("cert-manager"), Ordered, func() {
	BeforeAll(installCertManager, NodeTimeout(incluster.Timeout))
	describeOperator(password("cert-manager"), deleteCertificate)
})

// describeOperator defines the specs for one way to deploy. They build on each other, and follow the operator from its
// installation to its removal. spoil deletes the webhooks' certificate, or replaces it with an expired one, so that it
// must be renewed.
func describeOperator(operator incluster.Operator, spoil func(context.Context)) {
	incluster.DescribeArrival(operator)

	It("gives each of the sample Passwords its Secret", func(ctx SpecContext) {
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		named := incluster.Kubectl(ctx, "get", "passwords", "--namespace="+passwordNamespace, "--output=jsonpath={.items[*].status.secretName}")
		secrets := incluster.Kubectl(ctx, "get", "secrets", "--namespace="+passwordNamespace, "--selector=app.kubernetes.io/managed-by=password-operator", "--output=jsonpath={.items[*].metadata.name}")
		Expect(strings.Fields(secrets)).To(ContainElements("password-sample", "database-login", "former-password"))
		Expect(strings.Fields(secrets)).To(ConsistOf(strings.Fields(named)), "the statuses must name all Secrets")
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeChildren(operator)

	// +kubebuilder:scaffold:e2e-webhooks-checks

	describeWebhooks(operator)

	It("keeps refusing and converting while its certificate is renewed", func(ctx SpecContext) {
		before := storedCertificate(ctx)
		spoil(ctx)

		Eventually(storedCertificate).WithContext(ctx).Should(beRenewed(before), "the Secret webhook-server-cert should hold a new certificate")
		for _, pod := range operator.Pods(ctx) {
			Eventually(func(g Gomega, ctx context.Context) {
				expectService(ctx) // its failure ends the spec immediately, because the webhooks must answer all the time
				g.Expect(servedCertificate(ctx, pod)).To(Equal(storedCertificate(ctx)), "the pod %s should serve the new certificate", pod)
			}).WithContext(ctx).WithTimeout(4 * time.Minute).Should(Succeed())
		}
	}, SpecTimeout(2*incluster.Timeout))

	incluster.DescribeFailover(operator)
	incluster.DescribeEnd(operator)
}
