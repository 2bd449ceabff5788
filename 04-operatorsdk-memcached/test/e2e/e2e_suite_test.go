//go:build e2e

// Package e2e tests the manager as a cluster runs it: in pods, from an image, with nothing but
// its own roles. `make test-e2e` prepares the cluster and the image.
package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// namespace is where the manager runs.
	namespace = "memcached-operator-system"
	// memcachedNamespace is where the tests have their Memcacheds.
	memcachedNamespace = "memcached-e2e"

	// specTimeout bounds each spec. Most of it is for pulling images and for pods that start or end.
	specTimeout  = 5 * time.Minute
	pollInterval = time.Second
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	t.Chdir("../..") // commands run in the project's folder, not in the one of this package
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(pollInterval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Memcached e2e")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(os.Getenv("KUBECONFIG")).NotTo(BeEmpty(), "start these tests by `make test-e2e`, which sets KUBECONFIG")
	Expect(os.Getenv("IMG")).NotTo(BeEmpty(), "start these tests by `make test-e2e`, which sets IMG")
	tools, err := filepath.Abs("../bin")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))).To(Succeed())

	simulated := kubectl(ctx, "get", "nodes", `--output=jsonpath={.items[*].metadata.annotations.kwok\.x-k8s\.io/node}`)
	Expect(simulated).To(BeEmpty(), "the nodes of this cluster are simulated and run no container: these tests need real ones")
	present := kubectl(ctx, "get", "--kustomize=config/default", "--ignore-not-found", "--output=name") +
		kubectl(ctx, "get", "namespace", memcachedNamespace, "--ignore-not-found", "--output=name")
	Expect(present).To(BeEmpty(), "these tests end by removing all of this from the cluster, so it must not be there when they begin: `make undeploy`, and delete the namespace %s", memcachedNamespace)
}, NodeTimeout(time.Minute))

// reportCluster puts into the report of a spec that failed what the cluster says about it.
func reportCluster(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	commands := []string{
		"logs --namespace=" + namespace + " --selector=control-plane=controller-manager --prefix --tail=200",
		"describe pods --namespace=" + namespace,
		"get memcacheds,deployments,services --output=yaml --namespace=" + memcachedNamespace,
		"describe pods --namespace=" + memcachedNamespace,
		"get events --all-namespaces --sort-by=.metadata.creationTimestamp",
	}
	for _, command := range commands {
		output, err := tryKubectl(ctx, strings.Fields(command)...)
		if err != nil {
			output += err.Error()
		}
		AddReportEntry("kubectl "+command, output, ReportEntryVisibilityFailureOrVerbose)
	}
}
