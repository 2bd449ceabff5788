package deployment

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// installed contains those objects of an installation that the tests check.
type installed struct {
	namespace  corev1.Namespace
	deployment appsv1.Deployment
	budget     policyv1.PodDisruptionBudget
	services   []corev1.Service
	policies   []networkingv1.NetworkPolicy
}

func TestInstallations(t *testing.T) {
	for _, stage := range stages {
		for _, installation := range stage.installations {
			t.Run(stage.dir+" "+installation, func(t *testing.T) {
				objects := build(t, filepath.Join(stage.dir, "config", installation))
				t.Run("accepts only restricted pods", objects.checkNamespace)
				t.Run("runs two replicas of which one leads", objects.checkReplicas)
				t.Run("has a container with probes, limits and few privileges", objects.checkContainer)
				t.Run("spreads its pods over the nodes, and loses at most one at a time to a disruption", objects.checkDisruption)
				t.Run("has Services that reach its ports", objects.checkServices)
				t.Run("accepts connections only to the ports of its Services", objects.checkPolicies)
			})
		}
	}
}

// TestDeployWaits checks that `make deploy` waits for the Deployment that it installs.
func TestDeployWaits(t *testing.T) {
	for _, stage := range stages {
		objects := build(t, filepath.Join(stage.dir, "config", stage.installations[0]))
		NewWithT(t).Expect(read(t, stage.dir, "Makefile")).To(ContainSubstring(
			"\t$(BIN)/workshop rollout deployment/"+objects.deployment.Name+" --namespace="+objects.namespace.Name+"\n"), "see deploy in %s/Makefile", stage.dir)
	}
}

func (i installed) checkNamespace(t *testing.T) {
	g := NewWithT(t)
	g.Expect(i.namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
	g.Expect(i.deployment.Namespace).To(Equal(i.namespace.Name))
}

func (i installed) checkReplicas(t *testing.T) {
	g := NewWithT(t)
	g.Expect(i.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(i.container().Args).To(ContainElement("--leader-elect"), "without leader election, both replicas would reconcile")
}

func (i installed) checkContainer(t *testing.T) {
	g := NewWithT(t)
	container := i.container()
	g.Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "an image that was loaded into the nodes may be in no registry")
	g.Expect(container.LivenessProbe).NotTo(BeNil())
	g.Expect(container.ReadinessProbe).NotTo(BeNil())
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		g.Expect(container.Resources.Requests).To(HaveKey(name))
		g.Expect(container.Resources.Limits).To(HaveKey(name))
	}
	g.Expect(i.deployment.Spec.Template.Spec.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
	g.Expect(container.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
	g.Expect(container.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
}

func (i installed) checkDisruption(t *testing.T) {
	g := NewWithT(t)
	spread := i.deployment.Spec.Template.Spec.TopologySpreadConstraints
	g.Expect(spread).To(HaveLen(1))
	g.Expect(spread[0].TopologyKey).To(Equal(corev1.LabelHostname))
	g.Expect(spread[0].WhenUnsatisfiable).To(Equal(corev1.ScheduleAnyway), "the operator must also run in a cluster with one node")
	g.Expect(i.selects(spread[0].LabelSelector)).To(BeTrue(), "the constraint must count the Deployment's pods")

	g.Expect(i.budget.Spec.MaxUnavailable).To(HaveValue(HaveField("IntVal", BeEquivalentTo(1))))
	g.Expect(i.budget.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)), "replicas that aren't ready must not block a drain")
	g.Expect(i.selects(i.budget.Spec.Selector)).To(BeTrue(), "the budget must be for the Deployment's pods")
}

func (i installed) checkServices(t *testing.T) {
	g := NewWithT(t)
	g.Expect(i.services).NotTo(BeEmpty(), "the metrics need a Service")
	for _, service := range i.services {
		g.Expect(i.selects(metav1.SetAsLabelSelector(service.Spec.Selector))).To(BeTrue(), "Service %s must select the Deployment's pods", service.Name)
		for _, port := range service.Spec.Ports {
			g.Expect(i.portNames()).To(ContainElement(port.TargetPort.StrVal), "Service %s must lead to a port of the container", service.Name)
		}
	}
}

func (i installed) checkPolicies(t *testing.T) {
	g := NewWithT(t)
	var open, served []string
	for _, policy := range i.policies {
		g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress), "%s: the operator's own connections must not be restricted", policy.Name)
		g.Expect(i.selects(&policy.Spec.PodSelector)).To(BeTrue(), "NetworkPolicy %s must be for the Deployment's pods", policy.Name)
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open = append(open, port.Port.StrVal)
				// The API server, which calls the webhooks, can be selected only by its address, which differs from cluster
				// to cluster.
				g.Expect(rule.From == nil).To(Equal(port.Port.StrVal == "webhook-server"), "NetworkPolicy %s must restrict the clients of each port, except that of the webhooks: found port %s", policy.Name, port.Port.StrVal)
			}
		}
	}
	for _, service := range i.services {
		for _, port := range service.Spec.Ports {
			served = append(served, port.TargetPort.StrVal)
		}
	}
	g.Expect(open).To(ConsistOf(served), "the policies must open the ports of the Services, and no others")
}

func (i installed) container() corev1.Container { return i.deployment.Spec.Template.Spec.Containers[0] }

func (i installed) portNames() []string {
	var names []string
	for _, port := range i.container().Ports {
		names = append(names, port.Name)
	}
	return names
}

// selects reports whether a selector, which must not be empty, matches the Deployment's pods.
func (i installed) selects(selector *metav1.LabelSelector) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !parsed.Empty() && parsed.Matches(labels.Set(i.deployment.Spec.Template.Labels))
}

// build renders an installation with the kustomize that `make tools` builds.
func build(t *testing.T, folder string) installed {
	g := NewWithT(t)
	output, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kustomize"), "build", filepath.Join(root, folder)).Output()
	g.Expect(err).NotTo(HaveOccurred(), "bin/kustomize build %s: if bin/kustomize is missing, `make tools` builds it", folder)
	var objects installed
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(output))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		objects.add(g, document)
	}
}

func (i *installed) add(g *WithT, document []byte) {
	var kind metav1.TypeMeta
	g.Expect(yaml.Unmarshal(document, &kind)).To(Succeed())
	switch kind.Kind {
	case "Namespace":
		g.Expect(yaml.UnmarshalStrict(document, &i.namespace)).To(Succeed())
	case "Deployment":
		g.Expect(yaml.UnmarshalStrict(document, &i.deployment)).To(Succeed())
	case "PodDisruptionBudget":
		g.Expect(yaml.UnmarshalStrict(document, &i.budget)).To(Succeed())
	case "Service":
		i.services = append(i.services, corev1.Service{})
		g.Expect(yaml.UnmarshalStrict(document, &i.services[len(i.services)-1])).To(Succeed())
	case "NetworkPolicy":
		i.policies = append(i.policies, networkingv1.NetworkPolicy{})
		g.Expect(yaml.UnmarshalStrict(document, &i.policies[len(i.policies)-1])).To(Succeed())
	}
}
