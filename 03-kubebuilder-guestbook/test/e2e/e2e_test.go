//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/03-kubebuilder-guestbook/test/utils"
	"example.com/operator-workshop/operatortest/incluster"
)

// The specs build on each other: they follow the manager from its installation to its removal.
var _ = Describe("the manager", Ordered, func() {
	incluster.DescribeArrival(guestbook)

	It("makes pods serve the pages of the samples", func(ctx SpecContext) {
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		status := incluster.Field(ctx, guestbookNamespace, "guestbook/full-guestbook", "{.status.active} {.status.standby[*]}")
		Expect(strings.Fields(status)).To(ConsistOf(podsOf(ctx, "full-guestbook")), "the status must name one pod as active and the other as standby")
		Eventually(page).WithContext(ctx).WithArguments("guestbook-sample").Should(ContainSubstring("Sign with: Name"))
		Eventually(page).WithContext(ctx).WithArguments("full-guestbook").Should(ContainSubstring("Sign with: Phone"))
	}, SpecTimeout(incluster.Timeout))

	It("replaces the pods when their settings change", func(ctx SpecContext) {
		before := podsOf(ctx, "full-guestbook")
		incluster.Kubectl(ctx, "patch", "configmap", "page-settings", "--namespace="+guestbookNamespace, "--type=merge",
			`--patch={"data":{"index.html.template":"New settings for: ${GUESTBOOK_ALIAS}"}}`)

		Eventually(page).WithContext(ctx).WithArguments("full-guestbook").Should(ContainSubstring("New settings for: Phone"))
		guestbook.WaitUntilConverged(ctx)
		Eventually(podsOf).WithContext(ctx).WithArguments("full-guestbook").Should(And(HaveLen(2), HaveEach(Not(BeElementOf(before)))), "all pods must be new")
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeChildren(guestbook)

	// +kubebuilder:scaffold:e2e-webhooks-checks

	incluster.DescribeFailover(guestbook)
	incluster.DescribeEnd(guestbook)
})

// podsOf returns the names of a Guestbook's pods that are not terminating.
func podsOf(ctx context.Context, guestbook string) []string {
	GinkgoHelper()
	return incluster.PodsWith(ctx, guestbookNamespace, "app.kubernetes.io/instance="+guestbook)
}

// page returns the page that a Guestbook's Service serves. The API server passes the request on to a pod.
func page(ctx context.Context, guestbook string) (string, error) {
	return utils.Run(exec.CommandContext(ctx, "kubectl", "get", "--raw=/api/v1/namespaces/"+guestbookNamespace+"/services/"+guestbook+":80/proxy/"))
}
