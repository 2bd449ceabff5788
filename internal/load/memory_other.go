//go:build !linux

package load

import (
	"os"
	"syscall"
)

// peakWhileRunning returns 0: on this system, only peakAfterEnd knows.
func peakWhileRunning(int) (int64, error) { return 0, nil }

// peakAfterEnd returns the peak memory of a process that has ended, in bytes, which is the unit that macOS uses.
func peakAfterEnd(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss
}
