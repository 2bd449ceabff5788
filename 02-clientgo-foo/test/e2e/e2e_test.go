//go:build e2e

// Package e2e tests the controller as a cluster runs it: in pods, from an image, with nothing but
// its own roles. `make test-e2e` prepares the cluster and the image.
package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

// fooNamespace is the namespace of the tests' Foos.
const fooNamespace = "foo-e2e"

// foo describes the deployed controller to the shared specs.
var foo = incluster.Operator{
	Namespace:  "foo-system",
	Deployment: "foo-controller",
	Lease:      "foo-controller",
	Manifests:  "config/default",
	Resources:  "foos",
	Trial:      fooNamespace,
	Samples:    []string{"--filename=config/samples"},
	Converged:  []string{"Ready"},
	ManagedBy:  "foo-controller",
	ChildKinds: "deployments,pods",
	Children: []incluster.Child{{
		Name: "deployment/web",
		Drift: map[string]incluster.Drift{
			"scaled by hand":            {Patch: `{"spec":{"replicas":1}}`, Field: "{.spec.replicas}"},
			"one of our labels removed": {Patch: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, Field: "{.metadata.labels}"},
		},
	}},
	Collision: &incluster.Collision{
		Foreign:   []string{"deployment", "taken", "--image=nginxinc/nginx-unprivileged:1.29.1-alpine", "--replicas=0"},
		Child:     "deployment/taken",
		Resource:  `{apiVersion: example.com/v1alpha1, kind: Foo, metadata: {name: late}, spec: {deploymentName: taken}}`,
		Name:      "foo/late",
		Condition: "Ready",
	},
}

func TestE2E(t *testing.T) { incluster.Run(t, "Foo e2e") }

var _ = BeforeSuite(func(ctx SpecContext) { incluster.Check(ctx, foo) }, NodeTimeout(time.Minute))

// The specs build on each other: they follow the controller from its installation to its removal.
var _ = Describe("the controller", Ordered, func() {
	incluster.DescribeArrival(foo)
	incluster.DescribeChildren(foo)

	It("runs nginx in a Foo's pods", func(ctx SpecContext) {
		for _, pod := range podsOf(ctx) {
			Eventually(incluster.TryKubectl).WithContext(ctx).WithArguments("get", "--raw=/api/v1/namespaces/"+fooNamespace+"/pods/"+pod+":8080/proxy/").
				Should(ContainSubstring("nginx"), "the pod %s must serve a page", pod)
		}
	}, SpecTimeout(incluster.Timeout))

	It("follows a Foo that is scaled", func(ctx SpecContext) {
		incluster.Kubectl(ctx, "scale", "foo/full-foo", "--replicas=2", "--namespace="+fooNamespace)
		incluster.Kubectl(ctx, "wait", "foo/full-foo", "--for=jsonpath={.status.availableReplicas}=2", "--timeout=3m", "--namespace="+fooNamespace)
		foo.WaitUntilConverged(ctx)
		Eventually(podsOf).WithContext(ctx).Should(HaveLen(2), "there must be as many pods as replicas")
	}, SpecTimeout(incluster.Timeout))

	It("lets kubectl restart the pods, because their annotations are not its own", func(ctx SpecContext) {
		before := podsOf(ctx)
		incluster.Kubectl(ctx, "rollout", "restart", "deployment/web", "--namespace="+fooNamespace)
		incluster.Kubectl(ctx, "rollout", "status", "deployment/web", "--namespace="+fooNamespace, "--timeout=3m")
		Eventually(podsOf).WithContext(ctx).Should(And(HaveLen(2), HaveEach(Not(BeElementOf(before)))), "all pods must be new")
		foo.WaitUntilConverged(ctx)
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeFailover(foo)
	incluster.DescribeEnd(foo)
})

// podsOf returns the names of the sample full-foo's pods that are not terminating.
func podsOf(ctx context.Context) []string {
	GinkgoHelper()
	return incluster.PodsWith(ctx, fooNamespace, "app.kubernetes.io/managed-by=foo-controller,app.kubernetes.io/instance=web")
}
