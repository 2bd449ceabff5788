package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

// operator describes the stage to the test kit. The sample sets every field, and asks for two pods, so that there is a
// budget.
var operator = operatortest.Operator{
	CRDs:           []string{"../../config/crd/bases"},
	Samples:        "../../config/samples",
	InvalidSamples: "../../config/samples/invalid",
	Sample:         "../../config/samples/cache_v1alpha1_memcached_full.yaml",
	Roles:          []string{"../../config/rbac/role.yaml", "../../config/rbac/leader_election_role.yaml"},
	Run:            runForKit,
	AllNamespaces:  true,
	Condition:      "Available",
	Children: []operatortest.Child{{
		Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Drift: map[string]string{
			"scaled by hand":            `{"spec":{"replicas":7}}`,
			"another image":             `{"spec":{"template":{"spec":{"containers":[{"name":"memcached","image":"someone/else:1"}]}}}}`,
			"one of our labels removed": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			"privileges requested":      `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`,
			//workshop:step 4.14b
			"fewer connections": `{"spec":{"template":{"spec":{"containers":[{"name":"memcached","image":"docker.io/library/memcached:1.6.39-alpine","args":["--port=12000","--memory-limit=128","--conn-limit=16"]}]}}}}`,
		},
		Foreign: map[string]string{
			"pods restarted by kubectl": `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}}}}}`,
			"a longer deadline":         `{"spec":{"progressDeadlineSeconds":900}}`,
		},
	}, {
		Kind: corev1.SchemeGroupVersion.WithKind("Service"),
		Drift: map[string]string{
			"no pods selected": `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`,
			"another target":   `{"spec":{"ports":[{"name":"memcached","port":12000,"targetPort":1}]}}`,
		},
		Foreign: map[string]string{
			"addresses of unready pods": `{"spec":{"publishNotReadyAddresses":true}}`,
		},
	}, {
		Kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		Name: budgetName,
		Drift: map[string]string{
			"all pods may be evicted": `{"spec":{"maxUnavailable":"100%"}}`,
			"no pods protected":       `{"spec":{"selector":{"matchLabels":{"app.kubernetes.io/instance":"other"}}}}`,
			"unready pods protected":  `{"spec":{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}}`,
		},
		Foreign: map[string]string{
			"a note of a user": `{"metadata":{"annotations":{"note":"of a user"}}}`,
		},
	}},
	// One write for the finalizer, three for the children, one for the first status, and two more for each of the two
	// pods: when it is created and when it becomes ready.
	MaxWrites: 9,
	Values: map[string][]any{
		"spec.image":           {"docker.io/library/memcached:1.6.39-alpine", "registry.test:5000/memcached@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "memcached"},
		"spec.size":            {int64(1), int64(2), int64(3)},
		"spec.memoryMegabytes": {int64(8), int64(64), int64(128)}, // 65536 would not fit on a simulated node
		"spec.maxConnections":  {int64(16), int64(2048)},          //workshop:step 4.14b
	},
	// The operator requeues only after failures, with backoff, and for pods that have crashed or fit on no node. Simulated
	// pods never crash, and the kit doesn't wait until a pod without a node counts as a failure.
	MaxPause:  5 * time.Second,
	Normalize: hidePodNames,
}

// budgetName returns the name of the Memcached's budget, or "" if it gets none.
func budgetName(memcached *unstructured.Unstructured) string {
	if size, _, _ := unstructured.NestedInt64(memcached.Object, "spec", "size"); size < 2 {
		return ""
	}
	return memcached.GetName()
}

// hidePodNames replaces the names of the ready pods in a Memcached's status, which are random, with their number.
func hidePodNames(object *unstructured.Unstructured) {
	status, found := object.Object["status"].(map[string]any)
	if !found || object.GetKind() != "Memcached" {
		return
	}
	if nodes, found := status["nodes"].([]any); found {
		status["nodes"] = int64(len(nodes))
	}
}

// runForKit runs the manager with the options that the kit asks for.
func runForKit(ctx context.Context, config *rest.Config, wishes operatortest.RunOptions) error {
	options := testOptions(wishes.Namespace)
	if wishes.Resync > 0 {
		options.ResyncPeriod = wishes.Resync
	}
	setup := managerOptions(ctx, options)
	if election := wishes.LeaderElection; election != nil {
		setup.LeaderElection, setup.LeaderElectionNamespace = true, election.Namespace
		setup.LeaseDuration, setup.RenewDeadline, setup.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
	}
	return runManager(ctx, config, setup, controller.DefaultImage)
}

var _ = Describe("the shared tests", func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
