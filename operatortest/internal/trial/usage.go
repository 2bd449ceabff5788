package trial

import (
	"context"
	"runtime"
	"strings"
	"time"

	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// Usage is what an operator is using at one moment.
type Usage struct {
	// Goroutines counts the goroutines by the function in which each started; Stacks contains one stack for each of these
	// functions.
	Goroutines map[string]int
	Stacks     map[string]string
	// Watches is the number of open watches.
	Watches int
	// Heap is the whole process's heap in use after a garbage collection, in bytes, without what the kit keeps of the
	// operator's log.
	Heap int64
	// Processes is measured in place of goroutines and the heap if the operator runs as processes of its own.
	Processes procgroup.Usage
}

// processLooks is the number of times that an operator's processes are measured. The lowest figure counts, because many
// programs briefly start others. The pauses between the measurements add up to almost a second.
const processLooks = int(time.Second / testcluster.PollInterval)

// IsProcess reports whether the operator runs as processes of its own.
func (i *Instance) IsProcess() bool { return i.group.Load() != 0 }

// Usage measures the operator. It recognises the operator's goroutines by the label that they inherit.
func (i *Instance) Usage(ctx context.Context) (Usage, error) {
	found := Usage{Goroutines: map[string]int{}, Stacks: map[string]string{}, Watches: i.Tap.Watching(func(traffic.Request) bool { return true })}
	if i.IsProcess() {
		var err error
		found.Processes, err = leastOf(ctx, int(i.group.Load()))
		return found, err
	}
	goroutines, err := allGoroutines()
	if err != nil {
		return found, err
	}
	for _, each := range goroutines {
		if each.label == i.label && !isConnection(each.stack) {
			entry := entryOf(each.stack)
			found.Goroutines[entry] += each.count
			found.Stacks[entry] = each.stack
		}
	}
	runtime.GC()
	runtime.GC() // the second collection empties pools
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	found.Heap = int64(memory.HeapAlloc) - int64(cap(i.log.text))
	return found, nil
}

// leastOf measures a process group for about a second, and returns the lowest value of each figure.
func leastOf(ctx context.Context, group int) (procgroup.Usage, error) {
	least, err := procgroup.UsageOf(group)
	ticker := time.NewTicker(testcluster.PollInterval)
	defer ticker.Stop()
	for look := 1; look < processLooks && err == nil; look++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return least, ctx.Err()
		}
		var next procgroup.Usage
		next, err = procgroup.UsageOf(group)
		least.Threads, least.Files, least.Memory = min(least.Threads, next.Threads), min(least.Files, next.Files), min(least.Memory, next.Memory)
	}
	return least, err
}

// isConnection reports whether a goroutine serves a connection, which client-go keeps for the next request.
func isConnection(stack string) bool {
	return strings.Contains(stack, ").readLoop+") || strings.Contains(stack, ").writeLoop+")
}

// entryOf returns the function in which a goroutine started: the last one in its stack.
func entryOf(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 3 {
		return ""
	}
	function, _, _ := strings.Cut(fields[2], "+0x")
	return function
}
