package toolchain

import (
	"fmt"
	"io"
	"time"
)

// progress shows the steps of a build: the download of the modules, and then each component. On a terminal, the current
// line counts the seconds. Elsewhere, there is one line for each step, written when the step is done or has failed.
type progress struct {
	out      io.Writer
	terminal bool
	total    int
	start    time.Time
}

// run calls work and shows it as step number n.
func (p *progress) run(n int, name string, work func() error) error {
	began := time.Now()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.tick(n, name, began, stop)
	}()
	err := work()
	close(stop)
	<-stopped
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	p.line(n, name, outcome, began)
	if p.terminal {
		fmt.Fprintln(p.out)
	}
	return err
}

func (p *progress) tick(n int, name string, began time.Time, stop <-chan struct{}) {
	if !p.terminal {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		p.line(n, name, "building", began)
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

func (p *progress) line(n int, name, state string, began time.Time) {
	width := len(fmt.Sprint(p.total))
	text := fmt.Sprintf("[%*d/%d] %-26s %-8s %6s   total %s", width, n, p.total, name, state, clock(time.Since(began)), clock(time.Since(p.start)))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s %s", bar(n-1, p.total, state == "done"), text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// bar returns a bar that shows how many of the steps are finished.
func bar(finished, total int, current bool) string {
	if current {
		finished++
	}
	const width = 20
	filled := finished * width / total
	cells := make([]rune, width)
	for i := range cells {
		cells[i] = '·'
		if i < filled {
			cells[i] = '█'
		}
	}
	return string(cells)
}

// clock formats a duration as minutes and seconds, such as "3:07".
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
