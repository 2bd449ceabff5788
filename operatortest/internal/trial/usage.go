package trial

import (
	"runtime"
	"strings"

	"example.com/operator-workshop/operatortest/traffic"
)

// Usage is what an operator is using at one moment.
type Usage struct {
	// Goroutines counts them by the function that each runs; Stacks contains one stack for each function.
	Goroutines map[string]int
	Stacks     map[string]string
	// Watches is the number of open watches.
	Watches int
	// Heap is the whole process's heap in use after a garbage collection, in bytes, without the log that the kit
	// keeps.
	Heap int64
}

// IsProcess reports whether the operator runs as a process of its own; then Usage knows only its watches.
func (i *Instance) IsProcess() bool {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	return len(i.log.files) > 0
}

// Usage measures the operator. It recognizes the operator's goroutines by the label that they inherit.
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
	runtime.GC() // the second collection empties pools
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	found.Heap = int64(memory.HeapAlloc) - int64(cap(i.log.text))
	return found, nil
}

// isConnection reports whether a goroutine serves a connection, which client-go keeps for the next request.
func isConnection(stack string) bool {
	return strings.Contains(stack, ").readLoop+") || strings.Contains(stack, ").writeLoop+")
}

// entryOf returns the function with which a goroutine began: the last one in its stack.
func entryOf(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 3 {
		return ""
	}
	function, _, _ := strings.Cut(fields[2], "+0x")
	return function
}
