package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"text/tabwriter"

	"golang.org/x/term"

	"example.com/operator-workshop/operatortest/report"
)

// shared is shown in place of a behaviour's name for trials whose results several behaviours use.
const shared = "(shared)"

// progress prints a line for each behaviour whose trials have ended. On a terminal, the lines below these count the
// trials of each behaviour that is being tried, and of all behaviours together.
type progress struct {
	table *tabwriter.Writer
	// output is the terminal. It is nil if there is none that can overwrite lines.
	output io.Writer

	mu            sync.Mutex
	done, running map[string]int
	// below is the number of lines below those of the behaviours whose trials have ended.
	below int
}

func newProgress(output io.Writer, live bool) *progress {
	made := &progress{table: tabwriter.NewWriter(output, 18, 0, 2, ' ', 0), done: map[string]int{}, running: map[string]int{}}
	if live {
		made.output = output
	}
	return made
}

// isTerminal reports whether output is a terminal that can overwrite lines; one with TERM=dumb can't.
func isTerminal(output io.Writer) bool {
	file, ok := output.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

func (p *progress) behaviour(ended report.Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.table, ended.Line())
	_ = p.table.Flush() // a closed output doesn't end the run
	p.draw()
}

// trial records that a trial of a behaviour has begun or, if ended is true, has ended.
func (p *progress) trial(behaviour string, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if behaviour == "" {
		behaviour = shared
	}
	if ended {
		p.running[behaviour]--
		p.done[behaviour]++
	} else {
		p.running[behaviour]++
	}
	p.clear()
	p.draw()
}

// end removes the lines about what is in progress.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.below > 0 { // move up, and erase to the end of the screen
		fmt.Fprintf(p.output, "\x1b[%dA\x1b[J", p.below)
		p.below = 0
	}
}

func (p *progress) draw() {
	if p.output == nil {
		return
	}
	done, running := 0, 0
	for _, name := range slices.Sorted(maps.Keys(p.running)) {
		done, running = done+p.done[name], running+p.running[name]
		if p.running[name] > 0 {
			fmt.Fprintf(p.table, "%s\t…\t%s done, %d running\n", name, report.Count(p.done[name], "trial"), p.running[name])
			p.below++
		}
	}
	fmt.Fprintf(p.table, "all\t…\t%s done, %d running\n", report.Count(done, "trial"), running)
	p.below++
	_ = p.table.Flush()
}
