package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// row is a line of the first table that printTables prints. It has a figure for each number of resources. ideal is the
// ideal figure, or "" if none is known.
type row struct {
	name  string
	value func(figures) string
	ideal string
}

// printTables prints the figures of one stage in Markdown, with a column for each number of resources.
func printTables(out io.Writer, stage string, idealWrites int, idle time.Duration, measured []figures) {
	each := func(number func(figures) int) func(figures) string {
		return func(f figures) string { return perResource(number(f), f.resources) }
	}
	total := func(number func(figures) int) func(figures) string {
		return func(f figures) string { return fmt.Sprint(number(f)) }
	}
	rows := []row{
		{name: "all created", value: func(f figures) string { return seconds(f.created) }},
		{name: "all converged, the first and the last time", value: func(f figures) string { return allSeconds(f.with) }},
		{name: "the same children without an operator, in between", value: func(f figures) string { return allSeconds(f.baseline) }},
		{name: "ratio to the same children without an operator", value: ratio, ideal: "1.00"},
		{name: "one resource, from its creation to convergence: median, 99th percentile", value: latencies},
		{name: "writes per resource until all have converged", value: each(writesToConverge), ideal: fmt.Sprint(idealWrites)},
		{name: "… until quiet", value: each(writesToQuiet), ideal: fmt.Sprint(idealWrites)},
		{name: "… as a multiple of the ideal", value: func(f figures) string {
			return fmt.Sprintf("%.2f", float64(writesToQuiet(f))/float64(f.resources*idealWrites))
		}, ideal: "1.00"},
		{name: "events per resource until quiet", value: each(func(f figures) int { return f.converge.events + f.settle.events })},
		{name: "reads (get, list) until quiet", value: total(func(f figures) int { return f.converge.reads + f.settle.reads }), ideal: "0"},
		{name: "conflicts (409)", value: total(func(f figures) int { return f.converge.conflicts + f.settle.conflicts + f.idle.conflicts }), ideal: "0"},
		{name: "other refused requests", value: total(func(f figures) int { return f.converge.refusals + f.settle.refusals + f.idle.refusals }), ideal: "0"},
		{name: fmt.Sprintf("writes in %.0f s idle, a resync every %.0f s", idle.Seconds(), resyncPeriod.Seconds()), value: total(func(f figures) int { return f.idle.writes + f.idle.events }), ideal: "0"},
		{name: "reads in that time", value: total(func(f figures) int { return f.idle.reads }), ideal: "0"},
		{name: "writes after a restart", value: total(func(f figures) int { return f.restart.writes + f.restart.events }), ideal: "0"},
		{name: "reads and watches after a restart", value: total(func(f figures) int { return f.restart.reads + f.restart.watches })},
		{name: "peak memory", value: func(f figures) string { return fmt.Sprintf("%.0f MB", float64(f.peak)/1e6) }},
		{name: "CPU time until all have converged", value: func(f figures) string { return seconds(f.busyTime) }},
		{name: "CPU time idle", value: func(f figures) string { return seconds(f.idleTime) }},
	}
	head := columns(measured, func(f figures) string { return fmt.Sprintf("%d resources", f.resources) })
	fmt.Fprintf(out, "\n| %s under load | %s | ideal |\n|---|%s---|\n", stage, head, strings.Repeat("---|", len(measured)))
	for _, row := range rows {
		fmt.Fprintf(out, "| %s | %s | %s |\n", row.name, columns(measured, row.value), row.ideal)
	}
	printKinds(out, stage, head, measured)
}

// phases are the phases for which the kinds of requests are listed.
var phases = []struct {
	name  string
	kinds func(figures) map[string]int
}{
	{name: "", kinds: kindsToQuiet},
	{name: "idle: ", kinds: func(f figures) map[string]int { return f.idle.kinds }},
	{name: "restart: ", kinds: func(f figures) map[string]int { return f.restart.kinds }},
}

// printKinds prints how often each kind of request was made, in total and per resource.
func printKinds(out io.Writer, stage, head string, measured []figures) {
	fmt.Fprintf(out, "\n| requests of %s, total and per resource | %s |\n|---|%s\n", stage, head, strings.Repeat("---|", len(measured)))
	for _, phase := range phases {
		for _, kind := range allKinds(measured, phase.kinds) {
			fmt.Fprintf(out, "| %s%s | %s |\n", phase.name, kind, columns(measured, func(f figures) string {
				number := phase.kinds(f)[kind]
				return fmt.Sprintf("%d, %s", number, perResource(number, f.resources))
			}))
		}
	}
}

// allKinds returns the kinds of requests that occur with at least one of the numbers of resources, sorted.
func allKinds(measured []figures, kinds func(figures) map[string]int) []string {
	all := map[string]int{}
	for _, each := range measured {
		maps.Copy(all, kinds(each))
	}
	return slices.Sorted(maps.Keys(all))
}

func kindsToQuiet(f figures) map[string]int {
	sum := map[string]int{}
	for _, phase := range []tally{f.converge, f.settle} {
		for kind, number := range phase.kinds {
			sum[kind] += number
		}
	}
	return sum
}

func columns(measured []figures, value func(figures) string) string {
	cells := make([]string, len(measured))
	for i, each := range measured {
		cells[i] = value(each)
	}
	return strings.Join(cells, " | ")
}

func writesToConverge(f figures) int { return f.converge.writes }

func writesToQuiet(f figures) int { return f.converge.writes + f.settle.writes }

func perResource(number, resources int) string {
	return fmt.Sprintf("%.2f", float64(number)/float64(resources))
}

func latencies(f figures) string {
	return seconds(percentile(f.latencies, 50)) + ", " + seconds(percentile(f.latencies, 99))
}

// allSeconds lists the times of several measurements, or returns "-" if there are none.
func allSeconds(durations []time.Duration) string {
	if len(durations) == 0 {
		return "-"
	}
	texts := make([]string, len(durations))
	for i, each := range durations {
		texts[i] = seconds(each)
	}
	return strings.Join(texts, ", ")
}

// ratio returns the mean time with the operator, divided by the mean time without it, or "-" if the latter is unknown.
func ratio(f figures) string {
	if len(f.baseline) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", mean(f.with)/mean(f.baseline))
}

func seconds(duration time.Duration) string { return fmt.Sprintf("%.2f s", duration.Seconds()) }
