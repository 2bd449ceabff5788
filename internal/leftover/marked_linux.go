package leftover

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// marked returns the IDs of the processes that were started with this setting in their environment.
func marked(setting string) ([]int, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range environments {
		// The file can't be read if the process has exited or belongs to another user. A zombie's is empty.
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+setting+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			found = append(found, pid)
		}
	}
	return found, nil
}
