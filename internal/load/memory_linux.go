package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// peakWhileRunning returns the peak memory of a process, in bytes. On Linux, getrusage is no use after the process has
// ended: a new process briefly shares its parent's memory, so its peak would include the parent's.
func peakWhileRunning(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parsePeak(string(content))
}

// parsePeak returns the peak in the line "VmHWM: 1234 kB" of a process's status, in bytes. See proc_pid_status(5).
func parsePeak(status string) (int64, error) {
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmHWM:" && fields[2] == "kB" {
			kibibytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("the process's status has no VmHWM in kB")
}

// peakAfterEnd returns 0, because on Linux, only peakWhileRunning knows the peak.
func peakAfterEnd(*os.ProcessState) int64 { return 0 }
