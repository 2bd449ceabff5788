package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// asker asks on in and out before something is installed into a cluster that is not the workshop's.
type asker struct {
	in  io.Reader
	out io.Writer
	// yes answers every question.
	yes bool
}

// Confirm fails unless the answer is yes. Ctrl-C ends the wait for it.
func (a asker) Confirm(ctx context.Context, question string) error {
	if a.yes {
		return nil
	}
	fmt.Fprintf(a.out, "%s Go on? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.out)
		return fmt.Errorf("interrupted: nothing was installed")
	case given := <-answer:
		if given == "y" || given == "yes" {
			return nil
		}
		if given == "" {
			fmt.Fprintln(a.out)
		}
		return fmt.Errorf("nothing was installed: answer y, or say YES=1 where nobody can answer")
	}
}
