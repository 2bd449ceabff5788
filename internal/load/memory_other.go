//go:build !linux

package load

import (
	"os"
	"syscall"
)

// peakWhileRunning is not known here, only peakAfterEnd.
func peakWhileRunning(int) (int64, error) { return 0, nil }

// peakAfterEnd is the most memory that an ended process has had, in bytes, which is the unit of macOS.
func peakAfterEnd(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss
}
