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

	"example.com/operator-workshop/04-operatorsdk-memcached/test/utils"
)

// The specs build on each other: they follow the manager from its arrival to its end.
var _ = Describe("the manager", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			runMake(ctx, "undeploy")
			kubectl(ctx, "delete", "namespace", memcachedNamespace, "--ignore-not-found")
			kubectl(ctx, "delete", "clusterrolebinding", "memcached-e2e-metrics-reader", "--ignore-not-found")
		}, NodeTimeout(specTimeout))
		runMake(ctx, "deploy")
		kubectl(ctx, "create", "namespace", memcachedNamespace)
	}, NodeTimeout(specTimeout))

	AfterEach(reportCluster, NodeTimeout(time.Minute))

	It("runs in two pods of a namespace that takes restricted ones only", func(ctx SpecContext) {
		kubectl(ctx, "rollout", "status", "deployment/memcached-operator-controller-manager", "--namespace="+namespace, "--timeout=4m")
		Expect(managerPods(ctx)).To(HaveLen(2))

		By("trying a pod that may do too much")
		_, err := tryKubectl(ctx, "run", "unrestricted", "--image=memcached-operator:dev", "--privileged", "--dry-run=server", "--namespace="+namespace)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
	}, SpecTimeout(specTimeout))

	It("works in one of the pods, the holder of the Lease", func(ctx SpecContext) {
		Eventually(leader).WithContext(ctx).Should(BeElementOf(managerPods(ctx)))
	}, SpecTimeout(specTimeout))

	It("serves its metrics over TLS to those whom the cluster allows it", func(ctx SpecContext) {
		stranger, reader := tokenOf(ctx, "stranger"), tokenOf(ctx, "metrics-reader")
		kubectl(ctx, "create", "clusterrolebinding", "memcached-e2e-metrics-reader",
			"--clusterrole=memcached-operator-metrics-reader", "--serviceaccount="+memcachedNamespace+":metrics-reader")
		status := func(scheme, token string) (int, error) {
			status, _, err := getMetrics(ctx, scheme, token)
			return status, err
		}
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		Eventually(status).WithArguments("http", reader).Should(Equal(http.StatusBadRequest), "nothing is served without TLS")
		Eventually(status).WithArguments("https", "").Should(Equal(http.StatusUnauthorized), "nothing is served to those who don't say who they are")
		Eventually(status).WithArguments("https", stranger).Should(Equal(http.StatusForbidden), "nothing is served to those who have no role for it")
		Eventually(status).WithArguments("https", reader).Should(Equal(http.StatusOK), "the role memcached-operator-metrics-reader allows it")
		_, metrics, err := getMetrics(ctx, "https", reader)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).To(ContainSubstring("rest_client_requests_total"))
	}, SpecTimeout(specTimeout))

	It("brings the sample Memcacheds up", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--kustomize=config/samples", "--namespace="+memcachedNamespace)
		waitUntilAvailable(ctx)

		nodes := kubectl(ctx, "get", "memcached/memcached-full", "--namespace="+memcachedNamespace, "--output=jsonpath={.status.nodes[*]}")
		Expect(strings.Fields(nodes)).To(ConsistOf(podsOf(ctx, "memcached-full")), "the status names the pods")
		Eventually(addressed).WithContext(ctx).WithArguments("memcached-full").Should(ConsistOf(podsOf(ctx, "memcached-full")), "the headless Service has the address of each pod")
		budgets := kubectl(ctx, "get", "poddisruptionbudgets", "--namespace="+memcachedNamespace, "--output=name")
		Expect(strings.Fields(budgets)).To(ConsistOf("poddisruptionbudget.policy/memcached-full"), "only a Memcached of several pods has one")
	}, SpecTimeout(specTimeout))

	It("has memcached answer in each pod, by the memory that was asked for", func(ctx SpecContext) {
		for _, pod := range podsOf(ctx, "memcached-full") {
			Expect(ask(ctx, pod, "12000", "set greeting 0 0 5", "hello")).To(Equal("STORED"))
			Expect(ask(ctx, pod, "12000", "get greeting")).To(Equal("VALUE greeting 0 5"))
			Expect(askUntil(ctx, pod, "12000", "STAT limit_maxbytes ", "stats")).To(Equal("STAT limit_maxbytes 134217728"), "128 MiB")
		}
	}, SpecTimeout(specTimeout))

	It("says that an image can't be pulled, and goes on with the next one", func(ctx SpecContext) {
		image := kubectl(ctx, "get", "memcached/memcached-full", "--namespace="+memcachedNamespace, "--output=jsonpath={.spec.image}")
		setImage(ctx, "image.invalid/memcached:1")
		kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Degraded", "--timeout=2m", "--namespace="+memcachedNamespace)
		kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Available", "--timeout=10s", "--namespace="+memcachedNamespace)

		setImage(ctx, image)
		kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Degraded=false", "--timeout=2m", "--namespace="+memcachedNamespace)
		waitUntilAvailable(ctx)
	}, SpecTimeout(specTimeout))

	It("goes on in the other pod when the working one is deleted", func(ctx SpecContext) {
		former := leader(ctx)
		kubectl(ctx, "delete", "pod", former, "--namespace="+namespace)
		kubectl(ctx, "scale", "memcached/memcached-sample", "--replicas=2", "--namespace="+memcachedNamespace)

		Eventually(leader).WithContext(ctx).ShouldNot(BeElementOf("", former))
		kubectl(ctx, "wait", "memcached/memcached-sample", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=3m", "--namespace="+memcachedNamespace)
	}, SpecTimeout(specTimeout))

	// +kubebuilder:scaffold:e2e-webhooks-checks

	It("lets go of a Memcached only after its pods", func(ctx SpecContext) {
		kubectl(ctx, "delete", "memcached/memcached-full", "--timeout=2m", "--namespace="+memcachedNamespace)
		pods := kubectl(ctx, "get", "pods", "--namespace="+memcachedNamespace, "--selector=app.kubernetes.io/instance=memcached-full", "--output=name")
		Expect(pods).To(BeEmpty(), "kubectl waits for the Memcached, and that for its pods")
	}, SpecTimeout(specTimeout))

	It("leaves nothing behind", func(ctx SpecContext) {
		runMake(ctx, "undeploy")

		Expect(kubectl(ctx, "get", "--kustomize=config/default", "--ignore-not-found", "--output=name")).To(BeEmpty(), "all that deploy made is gone")
		Eventually(kubectl).WithContext(ctx).WithArguments("get", "deployments,services,pods,poddisruptionbudgets", "--namespace="+memcachedNamespace,
			"--selector=app.kubernetes.io/managed-by=memcached-operator", "--output=name").Should(BeEmpty(), "all that the Memcacheds had is gone")
	}, SpecTimeout(specTimeout))
})

// managerPods are the names of the manager's pods, but for those that are ending.
func managerPods(ctx context.Context) []string {
	GinkgoHelper()
	return podsWith(ctx, namespace, "control-plane=controller-manager")
}

// podsOf are the names of a Memcached's pods, but for those that are ending.
func podsOf(ctx context.Context, memcached string) []string {
	GinkgoHelper()
	return podsWith(ctx, memcachedNamespace, "app.kubernetes.io/instance="+memcached)
}

func podsWith(ctx context.Context, namespace, selector string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "pods", "--namespace="+namespace, "--selector="+selector,
		"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"))
}

// leader is the pod that holds the Lease, "" while none does. The holder's name begins with that of its pod.
func leader(ctx context.Context) string {
	holder, err := tryKubectl(ctx, "get", "lease/memcached.example.com", "--namespace="+namespace, "--output=jsonpath={.spec.holderIdentity}")
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

func waitUntilAvailable(ctx context.Context) {
	GinkgoHelper()
	for _, condition := range []string{"Available", "Progressing=false"} {
		kubectl(ctx, "wait", "memcacheds", "--all", "--for=condition="+condition, "--timeout=4m", "--namespace="+memcachedNamespace)
	}
}

func setImage(ctx context.Context, image string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "memcached/memcached-full", "--namespace="+memcachedNamespace, "--type=merge", `--patch={"spec":{"image":"`+image+`"}}`)
}

// addressed are the pods that the name of a Memcached's Service stands for.
func addressed(ctx context.Context, memcached string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "endpointslices", "--namespace="+memcachedNamespace,
		"--selector=kubernetes.io/service-name="+memcached, "--output=jsonpath={.items[*].endpoints[*].targetRef.name}"))
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
