package behaviours

import (
	"context"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// clusterWide describes a correct operator that can't be restricted to one namespace.
func clusterWide() operatortest.Operator {
	operator := gadgetOperator("")
	confined := operator.Run
	operator.Run = func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
		options.Namespace = ""
		return confined(ctx, config, options)
	}
	operator.Confine = true
	return operator
}

var _ = pooledIt("an operator that watches all namespaces is accepted if the kit confines it", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, clusterWide(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, drift, neighbours, leastPrivilege} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed())
	}
})

var _ = pooledIt("an operator that watches all namespaces with a Role for one of them is caught", func(ctx context.Context, g Gomega) {
	operator := clusterWide()
	operator.Timeout = catchTimeout
	operator.Roles = []string{"testdata/gadget/role-namespaced.yaml"}
	g.Expect(tryReport(ctx, leastPrivilege, operator, "watch configmaps of all namespaces")).To(Succeed())
})
