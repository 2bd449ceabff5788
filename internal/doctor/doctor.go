// Package doctor checks which of the workshop's requirements a machine meets, and says how to meet the others.
package doctor

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"text/tabwriter"

	"example.com/operator-workshop/internal/repo"
)

// The workshop's requirements. docs/benchmarks.md says how much disk space and memory the workshop's commands
// took on one machine.
const (
	// buildSpace is the disk space that a first build needs for modules, compiler cache and tools, in bytes.
	buildSpace = 7e9
	// runSpace is the disk space that a cluster and its tests need once the tools are built, in bytes.
	runSpace = 1e9
	// memoryNeeded is the memory that the largest compiler process and a cluster need, in bytes.
	memoryNeeded = 4e9
	// inotifyInstances and inotifyWatches are the limits that kind recommends on Linux.
	inotifyInstances = 512
	inotifyWatches   = 524288
)

// Check is the result for one requirement.
type Check struct {
	Name   string
	Found  string
	Needed string
	// Remedy says what to do. It is empty if the requirement is met.
	Remedy string
	// Optional means that the machine is ready even if the requirement is not met.
	Optional bool
}

// OK reports whether the requirement is met.
func (c Check) OK() bool { return c.Remedy == "" }

// Examine checks every requirement that applies to this operating system. Docker is mandatory only if kind is true, for
// CLUSTER=kind.
func Examine(ctx context.Context, r repo.Repo, kind bool) []Check {
	checks := []Check{
		checkGo(ctx, r),
		checkTool(ctx, "make", "GNU make 3.81", "3.81", regexp.MustCompile(`GNU Make ([0-9.]+)`)),
		checkTool(ctx, "git", "git 2.20", "2.20", regexp.MustCompile(`git version ([0-9.]+)`)),
		checkWritable(r),
		checkDisk(r),
		checkMemory(),
		checkPorts(),
		checkTools(ctx, r),
	}
	if runtime.GOOS == "linux" {
		checks = append(checks,
			checkInotify("max_user_instances", inotifyInstances),
			checkInotify("max_user_watches", inotifyWatches))
	}
	return append(checks, checkDocker(ctx, kind))
}

// Ready reports whether every requirement that is not optional is met.
func Ready(checks []Check) bool {
	for _, check := range checks {
		if !check.OK() && !check.Optional {
			return false
		}
	}
	return true
}

// Print writes the checks as a table. Below the table, it says how to meet the requirements that are not met.
func Print(out io.Writer, checks []Check) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\tREQUIREMENT\tFOUND\tNEEDED")
	for _, check := range checks {
		mark := "ok"
		if !check.OK() {
			mark = "MISSING"
			if check.Optional {
				mark = "optional"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, check.Name, check.Found, check.Needed)
	}
	// Errors from writing to out are ignored.
	_ = table.Flush()
	for _, check := range checks {
		if !check.OK() {
			fmt.Fprintf(out, "\n%s: %s\n", check.Name, check.Remedy)
		}
	}
}
