//go:build e2e

// Package e2e tests the operator as a cluster runs it: in pods, from an image, with nothing but
// its own roles, and with an API server that calls its webhooks. `make test-e2e` prepares the cluster and the image.
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
	// namespace is where the operator runs.
	namespace = "password-operator-system"
	// passwordNamespace is where the tests have their Passwords.
	passwordNamespace = "password-e2e"

	// specTimeout bounds each spec. Most of it is for pods that start, and for nodes that pass a new
	// certificate on to them: a node looks about once a minute.
	specTimeout  = 5 * time.Minute
	pollInterval = time.Second
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	t.Chdir("../..") // commands run in the project's folder, not in the one of this package
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(pollInterval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Password e2e")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(os.Getenv("KUBECONFIG")).NotTo(BeEmpty(), "start these tests by `make test-e2e`, which sets KUBECONFIG")
	Expect(os.Getenv("IMG")).NotTo(BeEmpty(), "start these tests by `make test-e2e`, which sets IMG")
	tools, err := filepath.Abs("../bin")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))).To(Succeed())

	simulated := kubectl(ctx, "get", "nodes", `--output=jsonpath={.items[*].metadata.annotations.kwok\.x-k8s\.io/node}`)
	Expect(simulated).To(BeEmpty(), "the nodes of this cluster are simulated and run no container: these tests need real ones")
	present := deployed(ctx) + kubectl(ctx, "get", "namespace", passwordNamespace, "--ignore-not-found", "--output=name")
	Expect(present).To(BeEmpty(), "these tests end by removing all of this from the cluster, so it must not be there when they begin: `make undeploy`, and delete the namespace %s", passwordNamespace)
}, NodeTimeout(time.Minute))

// reportCluster puts into the report of a spec that failed what the cluster says about it. Of
// Secrets it tells the names only.
func reportCluster(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	commands := []string{
		"logs --namespace=" + namespace + " --selector=control-plane=controller-manager --prefix --tail=200",
		"describe pods --namespace=" + namespace,
		"get passwords --output=yaml --namespace=" + passwordNamespace,
		"get secrets --all-namespaces",
		"get mutatingwebhookconfigurations,validatingwebhookconfigurations --output=yaml",
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
