//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/05-webhook-password/test/utils"
)

// deployed names what is left of a deployment, of whichever CERTS. config/self-managed has all that lies
// outside of the operator's namespace.
func deployed(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "--kustomize=config/self-managed", "--ignore-not-found", "--output=name")
}

// managerPods are the names of the operator's pods, but for those that are ending.
func managerPods(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "pods", "--namespace="+namespace, "--selector=control-plane=controller-manager",
		"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"))
}

// leader is the pod that holds the Lease, "" while none does. The holder's name begins with that of its pod.
func leader(ctx context.Context) string {
	holder, err := tryKubectl(ctx, "get", "lease/password.example.com", "--namespace="+namespace, "--output=jsonpath={.spec.holderIdentity}")
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// waitForRollout returns when the operator runs in as many pods as its Deployment asks for.
func waitForRollout(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "rollout", "status", "deployment/password-operator-controller-manager", "--namespace="+namespace, "--timeout=4m")
}

// waitUntilReady returns when every Password of the tests has its Secret.
func waitUntilReady(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "wait", "passwords", "--all", "--for=condition=Ready", "--timeout=1m", "--namespace="+passwordNamespace)
}

// field is what a path of kubectl leads to in an object of the tests' namespace.
func field(ctx context.Context, object, path string) string {
	GinkgoHelper()
	return kubectl(ctx, "get", object, "--namespace="+passwordNamespace, "--output=jsonpath={"+path+"}")
}

// dryRun has the API server check the creation of an object as if it were made. A warning counts as an error.
func dryRun(ctx context.Context, manifest string) error {
	command := exec.CommandContext(ctx, "kubectl", "create", "--dry-run=server", "--warnings-as-errors", "--namespace="+passwordNamespace, "--filename=-")
	command.Stdin = strings.NewReader(manifest)
	_, err := utils.Run(command)
	return err
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
func runMake(ctx context.Context, target, certs string) {
	GinkgoHelper()
	_, err := utils.Run(exec.CommandContext(ctx, "make", target, "CERTS="+certs, "ENABLE_WEBHOOKS=true",
		"KUBECONFIG="+os.Getenv("KUBECONFIG"), "IMG="+os.Getenv("IMG")))
	Expect(err).NotTo(HaveOccurred())
}
