package incluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster/logs"
)

// Environment variables that `make test-e2e` sets.
const (
	// logsVariable names the folder for logs, events and objects after a failed spec.
	logsVariable = "E2E_LOGS"
	// keepVariable, if its value is not empty, keeps the cluster as it is after a failure.
	keepVariable = "KEEP"
)

// Run runs the suite of a package in the folder test/e2e of a project. The suite's working directory is the project's
// folder.
func Run(t *testing.T, name string) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	t.Chdir("../..")
	gomega.SetDefaultEventuallyTimeout(2 * time.Minute)
	gomega.SetDefaultEventuallyPollingInterval(pollInterval)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	ginkgo.RunSpecs(t, name)
}

// Check fails if the variable KUBECONFIG or IMG is missing, if the cluster's nodes are simulated, or if the cluster
// already contains something that the specs remove at the end.
func Check(ctx context.Context, o Operator) {
	ginkgo.GinkgoHelper()
	for _, name := range []string{"KUBECONFIG", "IMG"} {
		gomega.Expect(os.Getenv(name)).NotTo(gomega.BeEmpty(), "start these tests with `make test-e2e`, which sets %s", name)
	}
	simulated := Kubectl(ctx, "get", "nodes", `--output=jsonpath={.items[*].metadata.annotations.kwok\.x-k8s\.io/node}`)
	gomega.Expect(simulated).To(gomega.BeEmpty(), "the nodes of this cluster are simulated and run no container: these tests need real ones")
	present := o.deployed(ctx) + Kubectl(ctx, "get", "namespace/"+o.Trial, "clusterrolebinding/"+o.metricsBinding(), "--ignore-not-found", "--output=name")
	gomega.Expect(present).To(gomega.BeEmpty(), "the objects that these tests remove at the end must not exist when they begin: run `make undeploy`, and delete the namespace %s and the ClusterRoleBinding %s", o.Trial, o.metricsBinding())
}

// deployed names the objects in the operator's manifests that exist in the cluster.
func (o Operator) deployed(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	return Kubectl(ctx, "get", "--kustomize="+o.Manifests, "--ignore-not-found", "--output=name")
}

// report saves logs, events and objects after a failed spec, if E2E_LOGS is set.
func report(ctx ginkgo.SpecContext) {
	spec := ginkgo.CurrentSpecReport()
	dir := os.Getenv(logsVariable)
	if !spec.Failed() || dir == "" {
		return
	}
	if err := logs.Collect(ctx, "kubectl", os.Environ(), dir); err != nil {
		fmt.Fprintf(ginkgo.GinkgoWriter, "not all logs could be collected: %v\n", err)
	}
}

// kept reports whether the spec failed and the cluster must stay as it is.
func kept() bool { return os.Getenv(keepVariable) != "" && ginkgo.CurrentSpecReport().Failed() }

// measured adds a duration to the report.
func measured(what string, began time.Time) {
	ginkgo.AddReportEntry("measured: "+what, fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
}
