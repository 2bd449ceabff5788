package behaviours

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"example.com/operator-workshop/operatortest/internal/trial"
)

func TestRunRapidShrinksAndRestoresFlags(t *testing.T) {
	g := NewWithT(t)
	before := flag.Lookup("rapid.checks").Value.String()
	smallest, ran := 0, 0
	runRapid(7, defaultShrinkTime, func(t *rapid.T) {
		ran++
		if number := drawBelow(t, 64); number >= 5 {
			smallest = number
			t.Fatal("five or more")
		}
	})
	g.Expect(ran).To(BeNumerically(">", 1), "a property that fails must be tried again, with smaller values")
	g.Expect(smallest).To(BeElementOf(5, 6, 8, 16, 32), "the last number that failed must have no bit that could be left out")
	g.Expect(flag.Lookup("rapid.checks").Value.String()).To(Equal(before), "rapid's settings must be restored, because they are those of the whole process")
}

func TestPlan(t *testing.T) {
	schema := `{type: object, required: [name], properties: {name: {type: string, maxLength: 3}, size: {type: integer, minimum: 1, maximum: 3}}}`
	draw := func(g Gomega, seed int64) plan {
		search := newSearch((&trial.Runner{}), specsOf(g, schema, "{name: a, size: 2}"))
		var drawn plan
		runRapid(seed, defaultShrinkTime, func(t *rapid.T) {
			if made := search.draw(t); drawn.specs == nil {
				drawn = made
			}
		})
		return drawn
	}
	t.Run("is the same for the same seed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(draw(g, 3)).To(Equal(draw(g, 3)))
		g.Expect(draw(g, 3)).NotTo(Equal(draw(g, 4)))
	})
	t.Run("draws sequences from several specs, the sample's among them", func(t *testing.T) {
		g := NewWithT(t)
		drawn := draw(g, 3)
		g.Expect(drawn.specs).To(HaveLen(drawnSpecs + 1))
		g.Expect(drawn.specs[0]).To(Equal(map[string]any{"name": "a", "size": int64(2)}))
		g.Expect(drawn.sequences).To(HaveLen(sequences))
		for _, sequence := range drawn.sequences {
			g.Expect(sequence.specs).To(HaveLen(stepsPerSequence))
			for _, spec := range sequence.specs {
				g.Expect(drawn.specs).To(ContainElement(spec))
			}
		}
	})
}
