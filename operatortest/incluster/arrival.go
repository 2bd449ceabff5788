package incluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// DescribeArrival deploys the operator, and defines the specs for its pods, its metrics and the sample resources. At
// the end of the Ordered container, everything is removed, unless a spec failed and KEEP is set.
func DescribeArrival(o Operator) {
	ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
		ginkgo.DeferCleanup(o.remove, ginkgo.NodeTimeout(Timeout))
		began := time.Now()
		o.Make(ctx, "deploy")
		o.WaitForRollout(ctx)
		measured("deploy to ready", began)
		if o.Deployed != nil {
			o.Deployed(ctx)
		}
	}, ginkgo.NodeTimeout(Timeout))

	ginkgo.AfterEach(report, ginkgo.NodeTimeout(2*time.Minute))

	ginkgo.It("runs in as many pods as its Deployment asks for, each on a different node if there are enough", func(ctx ginkgo.SpecContext) {
		o.WaitForRollout(ctx)
		pods := o.placed(ctx)
		gomega.Expect(pods).To(gomega.HaveLen(o.replicas(ctx)), "the pods of %s", o.Deployment)
		if nodes := workers(ctx); len(nodes) >= len(pods) {
			gomega.Expect(distinct(pods)).To(gomega.HaveLen(len(pods)), "the node of each pod: %v; the failure of one node must not affect all of them, see topologySpreadConstraints in config/manager", pods)
		}
	}, ginkgo.SpecTimeout(Timeout))

	ginkgo.It("runs in a namespace that accepts only restricted pods", func(ctx ginkgo.SpecContext) {
		_, err := TryKubectl(ctx, "run", "unrestricted", "--image="+os.Getenv("IMG"), "--privileged", "--dry-run=server", "--namespace="+o.Namespace)
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`violates PodSecurity "restricted`)), "a privileged pod must be refused, see the labels of the namespace in config/")
	}, ginkgo.SpecTimeout(commandTimeout))

	ginkgo.It("works in one of the pods, which holds the Lease", func(ctx ginkgo.SpecContext) {
		gomega.Eventually(o.Leader).WithContext(ctx).Should(gomega.BeElementOf(o.Pods(ctx)), "one of the pods must hold the Lease %s", o.Lease)
	}, ginkgo.SpecTimeout(Timeout))

	if o.Metrics != nil {
		describeMetrics(o)
	}

	ginkgo.It("brings the samples to their desired state", func(ctx ginkgo.SpecContext) {
		Kubectl(ctx, "create", "namespace", o.Trial)
		if o.Prepare != nil {
			Kubectl(ctx, append(o.Prepare, "--namespace="+o.Trial)...)
		}
		Kubectl(ctx, append([]string{"apply", "--namespace=" + o.Trial}, o.Samples...)...)
		o.WaitUntilConverged(ctx)
	}, ginkgo.SpecTimeout(Timeout))
}

// remove removes everything that the specs have created, unless the user wants to examine a failure.
func (o Operator) remove(ctx ginkgo.SpecContext) {
	if kept() {
		return
	}
	o.Make(ctx, "undeploy")
	Kubectl(ctx, "delete", "namespace", o.Trial, "--ignore-not-found")
	Kubectl(ctx, "delete", "clusterrolebinding", o.metricsBinding(), "--ignore-not-found")
}

// WaitUntilConverged returns when all resources of the type o.Resources in the namespace o.Trial have the conditions in
// o.Converged. It fails the spec if one of these conditions takes longer than 4 minutes.
func (o Operator) WaitUntilConverged(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, condition := range o.Converged {
		Kubectl(ctx, "wait", o.Resources, "--all", "--for=condition="+condition, "--timeout=4m", "--namespace="+o.Trial)
	}
}

// WaitForRollout returns when the rollout of the operator's Deployment is complete. It fails the spec if that takes
// longer than 4 minutes.
func (o Operator) WaitForRollout(ctx context.Context) {
	ginkgo.GinkgoHelper()
	Kubectl(ctx, "rollout", "status", "deployment/"+o.Deployment, "--namespace="+o.Namespace, "--timeout=4m")
}

func (o Operator) replicas(ctx context.Context) int {
	ginkgo.GinkgoHelper()
	replicas, err := strconv.Atoi(Field(ctx, o.Namespace, "deployment/"+o.Deployment, "{.spec.replicas}"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(replicas).To(gomega.BeNumerically(">=", 2), "a single replica leaves no standby")
	return replicas
}

// Pods returns the names of the operator's pods, except those that are terminating.
func (o Operator) Pods(ctx context.Context) []string {
	ginkgo.GinkgoHelper()
	var names []string
	for name := range o.placed(ctx) {
		names = append(names, name)
	}
	return names
}

// placed returns the node of each of the operator's pods, except those that are terminating.
func (o Operator) placed(ctx context.Context) map[string]string {
	ginkgo.GinkgoHelper()
	labels := Field(ctx, o.Namespace, "deployment/"+o.Deployment, "{.spec.selector.matchLabels}")
	output := Kubectl(ctx, "get", "pods", "--namespace="+o.Namespace, "--selector="+selector(labels),
		"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{.spec.nodeName}}\n{{end}}{{end}}")
	nodes := map[string]string{}
	for line := range strings.Lines(output) {
		name, node, _ := strings.Cut(strings.TrimSpace(line), " ")
		nodes[name] = node
	}
	return nodes
}

// selector turns labels in JSON into a selector for kubectl.
func selector(labels string) string {
	return strings.NewReplacer("{", "", "}", "", `"`, "", ":", "=").Replace(labels)
}

// Leader returns the name of the pod that holds the Lease, or "" if none does, or if the Lease can't be read. The
// holder's identity begins with the pod's name.
func (o Operator) Leader(ctx context.Context) string {
	// This runs many times a second, so the command isn't printed.
	holder, err := exec.CommandContext(ctx, "kubectl", "get", "lease/"+o.Lease, "--namespace="+o.Namespace, "--output=jsonpath={.spec.holderIdentity}").Output()
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(string(holder), "_")
	return pod
}

// workers returns the nodes that accept any pod: they are schedulable and have no taints.
func workers(ctx context.Context) []string {
	ginkgo.GinkgoHelper()
	return strings.Fields(Kubectl(ctx, "get", "nodes",
		`--output=go-template={{range .items}}{{$free := not .spec.unschedulable}}{{range .spec.taints}}{{$free = false}}{{end}}{{if $free}}{{.metadata.name}} {{end}}{{end}}`))
}

// distinct returns the nodes of the placed pods, without duplicates.
func distinct(placed map[string]string) map[string]bool {
	nodes := map[string]bool{}
	for _, node := range placed {
		nodes[node] = true
	}
	return nodes
}

func (o Operator) metricsBinding() string { return o.Trial + "-metrics-reader" }

func describeMetrics(o Operator) {
	ginkgo.It("serves its metrics over TLS, to clients that the cluster allows to read them", func(ctx ginkgo.SpecContext) {
		Kubectl(ctx, "create", "clusterrolebinding", o.metricsBinding(),
			"--clusterrole="+o.Metrics.Role, fmt.Sprintf("--serviceaccount=%s:%s", o.Namespace, o.metricsBinding()))
		ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
			Kubectl(ctx, "delete", "clusterrolebinding", o.metricsBinding())
			Kubectl(ctx, "delete", "serviceaccounts", "stranger", o.metricsBinding(), "--namespace="+o.Namespace)
		}, ginkgo.NodeTimeout(commandTimeout))
		stranger, reader := o.tokenOf(ctx, "stranger"), o.tokenOf(ctx, o.metricsBinding())
		status := func(ctx context.Context, scheme, token string) (int, error) {
			status, _, err := o.getMetrics(ctx, scheme, token)
			return status, err
		}

		gomega.Eventually(status).WithContext(ctx).WithArguments("http", reader).Should(gomega.Equal(http.StatusBadRequest), "nothing must be served without TLS")
		gomega.Eventually(status).WithContext(ctx).WithArguments("https", "").Should(gomega.Equal(http.StatusUnauthorized), "a client without a token must get no metrics")
		gomega.Eventually(status).WithContext(ctx).WithArguments("https", stranger).Should(gomega.Equal(http.StatusForbidden), "a client without the role must get no metrics")
		gomega.Eventually(status).WithContext(ctx).WithArguments("https", reader).Should(gomega.Equal(http.StatusOK), "the role %s must allow it", o.Metrics.Role)
		_, metrics, err := o.getMetrics(ctx, "https", reader)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(metrics).To(gomega.ContainSubstring(o.Metrics.Contains))
	}, ginkgo.SpecTimeout(Timeout))
}
