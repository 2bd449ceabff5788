package incluster

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// DescribeEnd defines the specs that check that no container of the operator has been restarted, and that undeploying
// leaves nothing behind.
func DescribeEnd(o Operator) {
	ginkgo.It("has run without a restart of any container", func(ctx ginkgo.SpecContext) {
		restarts := Kubectl(ctx, "get", "pods", "--namespace="+o.Namespace,
			"--output=go-template={{range .items}}{{$pod := .metadata.name}}{{range .status.containerStatuses}}{{if .restartCount}}{{$pod}} {{.restartCount}}\n{{end}}{{end}}{{end}}")
		gomega.Expect(restarts).To(gomega.BeEmpty(), "no container may have been restarted, see `kubectl logs --previous`")
	}, ginkgo.SpecTimeout(commandTimeout))

	ginkgo.It("leaves nothing behind", func(ctx ginkgo.SpecContext) {
		o.Make(ctx, "undeploy")

		gomega.Expect(o.deployed(ctx)).To(gomega.BeEmpty(), "everything that `make deploy` created must be gone")
		left := func(ctx context.Context) string {
			return Kubectl(ctx, "get", o.ChildKinds, "--namespace="+o.Trial, "--selector=app.kubernetes.io/managed-by="+o.ManagedBy, "--output=name")
		}
		gomega.Eventually(left).WithContext(ctx).Should(gomega.BeEmpty(), "everything that belonged to the resources must be deleted")
		webhooks := Kubectl(ctx, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--output=jsonpath={.items[*].webhooks[*].clientConfig.service.namespace}")
		gomega.Expect(strings.Fields(webhooks)).NotTo(gomega.ContainElement(o.Namespace), "no webhook configuration may point to the operator's namespace any more")
	}, ginkgo.SpecTimeout(Timeout))
}
