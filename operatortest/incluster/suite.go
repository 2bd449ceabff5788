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

// What `make test-e2e` sets.
const (
	// logsVariable is the folder for what the cluster says about a spec that failed.
	logsVariable = "E2E_LOGS"
	// keepVariable is not empty if the cluster stays as a failure has left it.
	keepVariable = "KEEP"
)

// Run runs the suite of a package in the folder test/e2e of a project, with the project's folder to work in.
func Run(t *testing.T, name string) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	t.Chdir("../..")
	gomega.SetDefaultEventuallyTimeout(2 * time.Minute)
	gomega.SetDefaultEventuallyPollingInterval(pollInterval)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	ginkgo.RunSpecs(t, name)
}

// Check fails unless the cluster has nodes that run pods, and nothing yet of what the specs remove at their end.
func Check(ctx context.Context, o Operator) {
	ginkgo.GinkgoHelper()
	for _, name := range []string{"KUBECONFIG", "IMG"} {
		gomega.Expect(os.Getenv(name)).NotTo(gomega.BeEmpty(), "start these tests by `make test-e2e`, which sets %s", name)
	}
	simulated := Kubectl(ctx, "get", "nodes", `--output=jsonpath={.items[*].metadata.annotations.kwok\.x-k8s\.io/node}`)
	gomega.Expect(simulated).To(gomega.BeEmpty(), "the nodes of this cluster are simulated and run no container: these tests need real ones")
	present := o.deployed(ctx) + Kubectl(ctx, "get", "namespace", o.Trial, "--ignore-not-found", "--output=name")
	gomega.Expect(present).To(gomega.BeEmpty(), "these tests end by removing all of this from the cluster, so it must not be there when they begin: `make undeploy`, and delete the namespace %s", o.Trial)
}

// deployed names what there is of a deployment.
func (o Operator) deployed(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	return Kubectl(ctx, "get", "--kustomize="+o.Manifests, "--ignore-not-found", "--output=name")
}

// report writes down what the cluster says about a spec that failed.
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

// kept tells whether a failure stays in the cluster to be looked at.
func kept() bool { return os.Getenv(keepVariable) != "" && ginkgo.CurrentSpecReport().Failed() }

// measured puts a duration into the report.
func measured(what string, began time.Time) {
	ginkgo.AddReportEntry("measured: "+what, fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
}
