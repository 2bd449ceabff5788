package behaviours

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

func TestPlanAscends(t *testing.T) {
	g := NewWithT(t)
	known := specsOf(g, `{type: object, required: [version, size], properties: {version: {type: string}, size: {type: integer, minimum: 1, maximum: 3}}}`,
		`{version: "1.36", size: 2}`)
	known.Values["spec.version"] = []any{"1.36", "1.37"}
	search := newSearch((&trial.Runner{Operator: operatortest.Operator{Ascending: []string{"spec.version"}}}), known)
	rises, sizes := 0, map[any]bool{}
	runRapid(3, defaultShrinkTime, func(t *rapid.T) {
		for _, sequence := range search.draw(t).sequences {
			for i, spec := range sequence.specs[1:] {
				before := sequence.specs[i]["version"]
				g.Expect(spec["version"] == before || before == "1.36").To(BeTrue(), "the version must not go back in the sequence:\n%s", sequence)
				if spec["version"] != before {
					rises++
				}
				sizes[spec["size"]] = true
			}
		}
	})
	g.Expect(rises).To(BeNumerically(">", 0), "the later value must be visited, too")
	g.Expect(len(sizes)).To(BeNumerically(">", 1), "the other field must have several values")
}

var _ = Describe("a field that only ascends", Label("specs"), func() {
	It("needs its values in order, including the sample's", func(ctx SpecContext) {
		operator := gadgetOperator("")
		operator.Ascending = []string{"spec.colour"}
		expectReport(ctx, transitions, operator, "expected Operator.Values to list the values of spec.colour, which can only increase")
	}, NodeTimeout(specTimeout))
})
