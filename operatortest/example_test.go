package operatortest_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
	"example.com/operator-workshop/operatortest/testcluster"
)

// This example describes an operator of your own, which makes a ConfigMap for each Widget. In a suite, the variables,
// BeforeSuite and Describe are outside any function, and an ordinary test calls RunSpecs; without it, no spec would run.
func Example() {
	operator := operatortest.Operator{
		CRDs:           []string{"config/crd/bases"},
		Samples:        "config/samples",
		InvalidSamples: "config/samples/invalid",
		Sample:         "config/samples/example_v1_widget.yaml",
		Roles:          []string{"config/rbac/role.yaml", "config/rbac/leader_election_role.yaml"},
		Run:            runManager,
		Children: []operatortest.Child{{
			Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			Name: func(widget *unstructured.Unstructured) string { return widget.GetName() + "-settings" },
			Drift: map[string]string{
				"a key changed": `{"data":{"size":"99"}}`,
				"a key removed": `{"data":{"size":null}}`,
			},
			Foreign: map[string]string{"a key of another program": `{"data":{"theirs":"kept"}}`},
		}},
		MaxWrites: 2, // for the ConfigMap and the status
		Values:    map[string][]any{"spec.image": {"registry.example.com/widget:1", "registry.example.com/widget:2"}},
	}
	cluster := &testcluster.Cluster{CRDs: operator.CRDs}

	BeforeSuite(func(ctx SpecContext) {
		DeferCleanup(cluster.Stop)
		Expect(cluster.Start(ctx)).To(Succeed())
	})
	Describe("the Widget operator", func() {
		behaviours.DescribeSchema(operator, cluster)
		behaviours.DescribeOperator(operator, cluster)
	})
}

// runManager runs the operator, as main does, with the options that the kit asks for.
func runManager(ctx context.Context, restConfig *rest.Config, wishes operatortest.RunOptions) error {
	many := true // the kit runs several managers in one process, and their controllers have the same names
	options := ctrl.Options{
		Logger:     ctrl.LoggerFrom(ctx), // the kit searches this log for panics and the values of Secrets
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{wishes.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: &many},
	}
	if wishes.Resync > 0 {
		options.Cache.SyncPeriod = &wishes.Resync
	}
	if election := wishes.LeaderElection; election != nil {
		options.LeaderElection, options.LeaderElectionID = true, "widgets.example.com"
		options.LeaderElectionNamespace = election.Namespace
		options.LeaderElectionReleaseOnCancel = true
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
	}
	manager, err := ctrl.NewManager(restConfig, options)
	if err != nil {
		return fmt.Errorf("make a manager: %w", err)
	}
	// Here you add the controllers to the manager.
	return manager.Start(ctx)
}
