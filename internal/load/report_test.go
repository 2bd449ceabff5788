package load

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestPrintTables(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	printTables(out, "02-things", 2, time.Minute, []figures{
		{
			resources: 10, created: 100 * time.Millisecond,
			with: []time.Duration{1500 * time.Millisecond, 1300 * time.Millisecond}, baseline: []time.Duration{time.Second, 1200 * time.Millisecond},
			latencies: []time.Duration{time.Second, 2 * time.Second},
			converge:  tally{writes: 20, kinds: map[string]int{"create things": 20}},
			peak:      40e6,
		},
		{
			resources: 100, with: []time.Duration{time.Minute},
			converge: tally{writes: 200, conflicts: 3, kinds: map[string]int{"create things": 200}},
			settle:   tally{writes: 100, events: 50, kinds: map[string]int{"patch things": 100, "create events": 50}},
			idle:     tally{writes: 6, events: 1},
		},
	})
	for _, line := range []string{
		"| 02-things under load | 10 resources | 100 resources | ideal |\n|---|---|---|---|\n",
		"| all converged, the first and the last time | 1.50 s, 1.30 s | 60.00 s |  |",
		"| the same children without an operator, in between | 1.00 s, 1.20 s | - |  |",
		"| ratio to the same children without an operator | 1.27 | - | 1.00 |",
		"median, 99th percentile | 1.00 s, 2.00 s | 0.00 s, 0.00 s |",
		"| writes per resource until all have converged | 2.00 | 2.00 | 2 |",
		"| … until quiet | 2.00 | 3.00 | 2 |",
		"| … as a multiple of the ideal | 1.00 | 1.50 | 1.00 |",
		"| events per resource until quiet | 0.00 | 0.50 |",
		"| conflicts (409) | 0 | 3 | 0 |",
		"| writes in 60 s idle, a resync every 10 s | 0 | 7 | 0 |",
		"| peak memory | 40 MB | 0 MB |",
		"| create events | 0, 0.00 | 50, 0.50 |\n| create things | 20, 2.00 | 200, 2.00 |\n| patch things | 0, 0.00 | 100, 1.00 |\n",
	} {
		g.Expect(out.String()).To(ContainSubstring(line))
	}
}
