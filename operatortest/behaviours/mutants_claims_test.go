package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws in the order of the writes: only a watch shows them, because the final state is right.
const (
	claimsFirst mutation = "says that its ConfigMap exists before it creates it"
	claimsEarly mutation = "says that a gadget is ready once its Deployment is created"
)

// waitsForPods is a correct operator that resembles these.
const waitsForPods mutation = "says that a gadget is ready once its Deployment is available"

func (r *gadgetReconciler) claimFirst(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := r.writeStatus(ctx, gadget, ""); err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = Describe("the test kit", func() {
	catches("says too early that a spec is met",
		mutant{converges, claimsFirst, "there was no ConfigMap settings yet"},
		mutant{converges, claimsEarly, "Deployment gadget existed, but had no ready pod, although it wants 1"},
	)
})

var _ = DescribeTable("an operator that reports correctly when a spec is met is accepted", func(ctx SpecContext, sound mutation, leftOut map[string]string) {
	operator := gadgetOperator(sound)
	operator.LeftOut = leftOut
	Expect(checkLeftOut(operator.LeftOut)).To(Succeed())
	runner, err := trial.NewRunner(ctx, operator, cluster)
	Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	Expect(converges.try(ctx, runner)).To(Succeed())
},
	func(sound mutation, _ map[string]string) string { return "one that " + string(sound) },
	Entry(nil, waitsForPods, nil),
	Entry("one whose condition has another meaning, declared in LeftOut", claimsEarly, map[string]string{trial.Claims: "Ready says that everything has been created"}),
)
