//go:build !linux

package load

import (
	"os"
	"syscall"
)

// peakWhileRunning returns 0, because on this system, only peakAfterEnd knows the peak.
func peakWhileRunning(int) (int64, error) { return 0, nil }

// peakAfterEnd returns the peak memory of a process that has ended, in bytes. On macOS, Maxrss is in bytes.
func peakAfterEnd(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss
}
