package specgen

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAscend(t *testing.T) {
	spec := func(version any) map[string]any {
		return map[string]any{"runtime": map[string]any{"version": version}, "size": int64(2)}
	}
	cases := map[string]struct{ stops, want []any }{
		"rising values stay": {stops: []any{"1", "2", "3"}, want: []any{"1", "2", "3"}},
		"a falling value is replaced with the previous one": {stops: []any{"2", "1", "3"}, want: []any{"2", "2", "3"}},
		"falling values are replaced with the highest":      {stops: []any{"3", "1", "2", "1"}, want: []any{"3", "3", "3", "3"}},
		"an undeclared value stays":                         {stops: []any{"3", "latest", "1"}, want: []any{"3", "latest", "1"}},
		"an absent value stays absent":                      {stops: []any{"3", nil, "1"}, want: []any{"3", nil, "1"}},
		"the order is that of the declaration":              {stops: []any{"10", "2"}, want: []any{"10", "10"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known := &Specs{Values: map[string][]any{"spec.runtime.version": {"1", "2", "3", "10"}}}
			var stops, want []map[string]any
			for i := range c.stops {
				stops, want = append(stops, spec(c.stops[i])), append(want, spec(c.want[i]))
			}
			g.Expect(known.Ascend(stops, []string{"spec.runtime.version"})).To(Equal(want))
			for i := range stops {
				g.Expect(stops[i]).To(Equal(spec(c.stops[i])), "the original spec must not change, because other sequences visit it, too")
			}
		})
	}
}
