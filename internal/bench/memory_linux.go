package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"example.com/operator-workshop/internal/classroom"
)

// memory returns a component's share of the machine's memory, in bytes: its proportional set size (PSS), in which a
// page shared by n processes counts as 1/n for each. Source: proc_pid_smaps(5).
func memory(component classroom.Component) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", component.PID))
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", component.Name, err)
	}
	return parseShare(string(content))
}

// parseShare returns the share in the line "Pss: 1234 kB", in bytes.
func parseShare(rollup string) (uint64, error) {
	for line := range strings.Lines(rollup) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "Pss:" && fields[2] == "kB" {
			kibibytes, err := strconv.ParseUint(fields[1], 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("smaps_rollup has no Pss in kB")
}
