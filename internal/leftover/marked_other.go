//go:build !linux

package leftover

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// marked returns the IDs of the processes that were started with this setting in their environment. ps prints the
// environment after the command.
func marked(setting string) ([]int, error) {
	out, err := exec.Command("ps", "-A", "-E", "-ww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if !slices.Contains(fields, setting) {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			found = append(found, pid)
		}
	}
	return found, nil
}
