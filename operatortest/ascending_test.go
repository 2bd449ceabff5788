package operatortest

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestAscend(t *testing.T) {
	spec := func(version any) map[string]any {
		return map[string]any{"runtime": map[string]any{"version": version}, "size": int64(2)}
	}
	cases := map[string]struct{ stops, want []any }{
		"values that rise stay":                {stops: []any{"1", "2", "3"}, want: []any{"1", "2", "3"}},
		"one that falls keeps the last one":    {stops: []any{"2", "1", "3"}, want: []any{"2", "2", "3"}},
		"all that fall keep the highest":       {stops: []any{"3", "1", "2", "1"}, want: []any{"3", "3", "3", "3"}},
		"one that is not declared is let be":   {stops: []any{"3", "latest", "1"}, want: []any{"3", "latest", "1"}},
		"one that stays away is let be":        {stops: []any{"3", nil, "1"}, want: []any{"3", nil, "1"}},
		"the order is that of the declaration": {stops: []any{"10", "2"}, want: []any{"10", "10"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known := &specs{values: map[string][]any{"spec.runtime.version": {"1", "2", "3", "10"}}}
			var stops, want []map[string]any
			for i := range c.stops {
				stops, want = append(stops, spec(c.stops[i])), append(want, spec(c.want[i]))
			}
			g.Expect(known.ascend(stops, []string{"spec.runtime.version"})).To(Equal(want))
			for i := range stops {
				g.Expect(stops[i]).To(Equal(spec(c.stops[i])), "other journeys visit the same specs")
			}
		})
	}
}

func TestPlanAscends(t *testing.T) {
	g := NewWithT(t)
	known := specsOf(g, `{type: object, required: [version, size], properties: {version: {type: string}, size: {type: integer, minimum: 1, maximum: 3}}}`,
		`{version: "1.36", size: 2}`)
	known.values["spec.version"] = []any{"1.36", "1.37"}
	search := (&lab{operator: Operator{Ascending: []string{"spec.version"}}}).newTravels(known)
	rises, sizes := 0, map[any]bool{}
	runRapid(3, shrinkTime, func(t *rapid.T) {
		for _, journey := range search.draw(t).journeys {
			for i, spec := range journey.specs[1:] {
				before := journey.specs[i]["version"]
				g.Expect(spec["version"] == before || before == "1.36").To(BeTrue(), "the journey goes back:\n%s", journey)
				if spec["version"] != before {
					rises++
				}
				sizes[spec["size"]] = true
			}
		}
	})
	g.Expect(rises).To(BeNumerically(">", 0), "the later value is visited, too")
	g.Expect(len(sizes)).To(BeNumerically(">", 1), "the other fields go where they will")
}

var _ = Describe("a field that only ascends", Label("specs"), func() {
	It("needs values in their order, the sample's own among them", func(ctx SpecContext) {
		operator := gadgetOperator("")
		operator.Ascending = []string{"spec.colour"}
		expectReport(ctx, transitions, operator, "expected operator.Values to list the values of spec.colour, which only ascends")
	}, NodeTimeout(specTimeout))
})
