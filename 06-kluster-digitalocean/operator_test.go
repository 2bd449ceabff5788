package main

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/lifecycle"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

// operator describes the stage to the test kit. Sample has every field.
var operator = operatortest.Operator{
	CRDs:           []string{"config/crd/bases"},
	Samples:        "config/samples",
	InvalidSamples: "config/samples/invalid",
	Sample:         "config/samples/inspirit941_v1alpha1_kluster_full.yaml",
	Roles:          []string{"config/rbac/role.yaml"},
	Run:            runForKit,
	AllNamespaces:  true,
	Prepare:        createTokens,
	Children: []operatortest.Child{{
		Kind: corev1.SchemeGroupVersion.WithKind("Secret"),
		Name: func(kluster *unstructured.Unstructured) string { return kluster.GetName() + "-kubeconfig" },
		Drift: map[string]string{
			"another kubeconfig":        `{"data":{"kubeconfig":"c29tZWJvZHktZWxzZQ=="}}`,
			"no kubeconfig":             `{"data":{"kubeconfig":null}}`,
			"another digest":            `{"metadata":{"annotations":{"inspirit941.dev/kubeconfig-sha256":"00"}}}`,
			"no refresh time":           `{"metadata":{"annotations":{"inspirit941.dev/refresh-at":null}}}`,
			"one of our labels removed": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
		},
		Foreign: map[string]string{
			"another key": `{"data":{"theirs":"dGhlaXJz"}}`,
		},
	}},
	// The writes are two finalizers, the create intent, the ID, the Secret, and four status updates: one while the
	// cloud is creating the cluster, and one each time that one of the sample's three machines starts running.
	MaxWrites: 9,
	// In these tests, the operator polls the cloud several times a second.
	MaxPause: 5 * time.Second,
	External: clouds,
	Values: map[string][]any{
		"spec.name":             {"shop", "store"},
		"spec.region":           {"fra1", "ams3"},
		"spec.version":          {"1.36", "1.37"},
		"spec.nodePools":        {pools(2, "web"), pools(1, "web"), pools(2, "api")},
		"spec.tokenSecret.name": {"digitalocean", "another"},
		"spec.tokenSecret.key":  {"token", "another"},
	},
	Ascending: []string{"spec.version"},
	Immutable: []string{"spec.name", "spec.region"},
	Fixed:     map[string]string{"spec.deletionPolicy": "Orphan keeps the cluster, which these tests would take for a leak; ownership_test.go tests it"},
	Normalize: hideRandom,
}

// pools returns a list with one pool.
func pools(count int64, name string) []any {
	return []any{map[string]any{"name": name, "size": "s-2vcpu-4gb", "count": count}}
}

// hideRandom removes values that are random or depend on the time or on the Kluster's history.
func hideRandom(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "Secret":
		unstructured.RemoveNestedField(object.Object, "data", "kubeconfig")
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", refreshAnnotation)
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", digestAnnotation)
	case "Kluster":
		unstructured.RemoveNestedField(object.Object, "status", "klusterID")
		unstructured.RemoveNestedField(object.Object, "status", "account")
		unstructured.RemoveNestedField(object.Object, "status", "endpoint")
		unstructured.RemoveNestedField(object.Object, "status", "readyGeneration") // it depends on how often the spec has changed
		annotations := object.GetAnnotations()
		for _, name := range []string{klusterv1alpha1.ExternalNameAnnotation, klusterv1alpha1.ExternalAccountAnnotation, klusterv1alpha1.CreatePendingAnnotation} {
			delete(annotations, name)
		}
		object.SetAnnotations(annotations)
		status, _ := object.Object["status"].(map[string]any)
		list, _ := status["nodePools"].([]any)
		for _, pool := range list {
			delete(pool.(map[string]any), "id")
		}
	}
}

// runForKit runs the operator with the options that the kit asks for.
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

var _ = Describe("the shared tests", func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
