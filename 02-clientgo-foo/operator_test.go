package main

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/lifecycle"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

// operator describes the stage to the test kit. The sample has three replicas, so that a rollout takes several steps.
var operator = operatortest.Operator{
	CRDs:           []string{"config/crd/bases"},
	Samples:        "config/samples",
	InvalidSamples: "config/samples/invalid",
	Sample:         "config/samples/example_v1alpha1_foo_full.yaml",
	Roles:          []string{"config/rbac/role.yaml"},
	Run:            runForKit,
	AllNamespaces:  true,
	Children: []operatortest.Child{{
		Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Name: func(foo *unstructured.Unstructured) string {
			name, _, _ := unstructured.NestedString(foo.Object, "spec", "deploymentName")
			return name
		},
		Drift: map[string]string{
			"scaled by hand":            `{"spec":{"replicas":1}}`,
			"another image":             `{"spec":{"template":{"spec":{"containers":[{"name":"foo","image":"someone/else:1"}]}}}}`,
			"one of our labels removed": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			"privileges requested":      `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`,
			//workshop:step 2.15c
			"another message": `{"spec":{"template":{"spec":{"containers":[{"name":"foo","image":"nginxinc/nginx-unprivileged:1.29.1-alpine","env":[{"name":"MESSAGE","value":"Good night"}]}]}}}}`,
		},
		Foreign: map[string]string{
			"pods restarted by kubectl": `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}}}}}`,
			"a longer deadline":         `{"spec":{"progressDeadlineSeconds":900}}`,
		},
	}},
	// One write for the Deployment, one for the first status, and two for each of the three replicas: when its pod is
	// created, and when it becomes available.
	MaxWrites: 8,
	Drains:    true,
	Values: map[string][]any{
		"spec.deploymentName": {"web", "shop", "blog"},
		"spec.image":          {"nginxinc/nginx-unprivileged:1.29.1-alpine", "nginxinc/nginx-unprivileged:1.29.1"},
		// Fewer than the 10 that the schema allows: more pods would take longer and test nothing new.
		"spec.replicas": {int64(1), int64(2), int64(3)},
		"spec.message":  {"Good morning", "Good night"}, //workshop:step 2.15b
	},
	// The controller requeues only after failures, with backoff; five seconds leave time for a slow machine.
	MaxPause: 5 * time.Second,
	Unmeetable: []operatortest.Unmeetable{{
		Name:    "Deployment belongs to someone else",
		Patch:   `{"spec":{"deploymentName":"taken"}}`,
		Prepare: takeName,
	}},
}

// runForKit runs the controller with the options that the kit asks for.
func runForKit(ctx context.Context, config *rest.Config, wishes operatortest.RunOptions) error {
	options := testOptions(wishes.Namespace)
	if wishes.Resync > 0 {
		options.resyncPeriod = wishes.Resync
	}
	if election := wishes.LeaderElection; election != nil {
		options.LeaderElection = lifecycle.LeaderElection{
			Enabled:       true,
			Namespace:     election.Namespace,
			Identity:      election.Identity,
			LeaseDuration: election.LeaseDuration,
			RenewDeadline: election.RenewDeadline,
			RetryPeriod:   election.RetryPeriod,
		}
	}
	return run(ctx, config, options)
}

// takeName creates a Deployment that belongs to no Foo.
func takeName(ctx context.Context, writer client.Client, namespace string) error {
	deployment := newDeployment(newFoo(namespace, "someone-else", "taken"))
	deployment.OwnerReferences = nil
	deployment.Spec.Template.Spec.Containers[0].Image = "someone/else:1"
	return writer.Create(ctx, deployment)
}

var _ = Describe("the shared tests", func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
