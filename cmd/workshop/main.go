// Command workshop does the work of the Makefile: it builds the tools, runs the classroom cluster, plays the chapters
// and checks the exercises.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptedStatus is the exit status that shells report for a program ended by Ctrl-C.
const interruptedStatus = 130

func main() {
	os.Exit(run())
}

// run runs the command that the arguments name, and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second Ctrl-C ends this program immediately. The watchdog then stops the programs that a play has started.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	err := newRootCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, errNotDone) {
		return 1
	}
	fmt.Fprintf(os.Stderr, "workshop: %v\n", err)
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return interruptedStatus
	}
	return 1
}
