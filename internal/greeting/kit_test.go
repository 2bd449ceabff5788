package greeting

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

var operator = operatortest.Operator{
	CRDs:           crds,
	Samples:        "config/samples",
	InvalidSamples: "config/samples/invalid",
	Sample:         "config/samples/greeting.yaml",
	Roles:          []string{"config/rbac/role.yaml", "config/rbac/leader_election_role.yaml"},
	Run:            runForKit,
	Children: []operatortest.Child{{
		Kind:    corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Name:    func(greeting *unstructured.Unstructured) string { return greeting.GetName() + "-text" },
		Drift:   map[string]string{"another text": `{"data":{"text":"Go away"}}`, "no text": `{"data":{"text":null}}`},
		Foreign: map[string]string{"someone else's key": `{"data":{"mood":"good"}}`},
	}},
	MaxWrites: 2, // the ConfigMap, the status
	Values:    map[string][]any{"spec.name": {"Ada", "Grace"}},
}

// runForKit runs the manager with the options that the kit asks for.
func runForKit(ctx context.Context, config *rest.Config, wishes operatortest.RunOptions) error {
	options := testOptions(wishes.Namespace, cluster.Scheme)
	options.Logger = ctrl.LoggerFrom(ctx)
	if wishes.Resync > 0 {
		options.Cache.SyncPeriod = &wishes.Resync
	}
	if election := wishes.LeaderElection; election != nil {
		options.LeaderElection, options.LeaderElectionID = true, "greeting.example.com"
		options.LeaderElectionNamespace, options.LeaderElectionReleaseOnCancel = election.Namespace, true
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
	}
	return Run(ctx, config, options)
}

var _ = Describe("the shared tests", Label("kit"), func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
