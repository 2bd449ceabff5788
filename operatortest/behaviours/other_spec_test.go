package behaviours

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/internal/trial"
)

var _ = Describe("a spec generated from the schema", Label("specs"), func() {
	It("differs from the sample's in every field, and is accepted", func(ctx SpecContext) {
		runner, err := trial.NewRunner(ctx, gadgetOperator(""), cluster)
		Expect(err).NotTo(HaveOccurred())
		defer runner.Close()
		Expect(runner.OtherSpec(ctx)).To(Equal(map[string]any{"configMapName": "options", "size": int64(1), "colour": "red"}))
	}, NodeTimeout(specTimeout))

	It("is used only if the API server accepts it", func(ctx SpecContext) {
		operator := gadgetOperator("")
		operator.Values = map[string][]any{"spec.configMapName": {"Not A Name"}, "spec.size": {6}, "spec.colour": {"red"}}
		runner, err := trial.NewRunner(ctx, operator, cluster)
		Expect(err).NotTo(HaveOccurred())
		defer runner.Close()
		Expect(runner.OtherSpec(ctx)).To(Equal(map[string]any{"configMapName": "settings", "size": int64(2), "colour": "red"}))
		operator.Values["spec.colour"] = []any{"purple"}
		runner, err = trial.NewRunner(ctx, operator, cluster)
		Expect(err).NotTo(HaveOccurred())
		defer runner.Close()
		_, err = runner.OtherSpec(ctx)
		Expect(err).To(MatchError(And(ContainSubstring("declare Operator.Values"), ContainSubstring(`Unsupported value: "purple"`))))
	}, NodeTimeout(specTimeout))
})
