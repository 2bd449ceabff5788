package trial

import (
	"runtime"
	"strings"

	"example.com/operator-workshop/operatortest/traffic"
)

// Usage is what an operator uses at one moment.
type Usage struct {
	// Goroutines are how many it has, by the function that each runs, and Stacks is one of each.
	Goroutines map[string]int
	Stacks     map[string]string
	// Watches are the open ones.
	Watches int
	// Heap is what the whole process has in use after a garbage collection, in bytes, without the log that the kit keeps.
	Heap int64
}

// IsProcess tells whether the operator runs as a process of its own, of which Usage knows the watches only.
func (i *Instance) IsProcess() bool {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	return len(i.log.files) > 0
}

// Usage measures. The goroutines are known by the label that they inherit.
func (i *Instance) Usage() (Usage, error) {
	found := Usage{Goroutines: map[string]int{}, Stacks: map[string]string{}, Watches: i.Tap.Watching(func(traffic.Request) bool { return true })}
	if i.IsProcess() {
		return found, nil
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
	runtime.GC() // the second one empties pools
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	found.Heap = int64(memory.HeapAlloc) - int64(cap(i.log.text))
	return found, nil
}

// isConnection tells whether a goroutine serves a connection, which client-go keeps for the
// next request.
func isConnection(stack string) bool {
	return strings.Contains(stack, ").readLoop+") || strings.Contains(stack, ").writeLoop+")
}

// entryOf is the function that a goroutine began with: the last one of its stack.
func entryOf(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 3 {
		return ""
	}
	function, _, _ := strings.Cut(fields[2], "+0x")
	return function
}
