package leftover

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// marked lists the processes that were started with this setting in their environment.
func marked(setting string) ([]int, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range environments {
		// It can't be read once the process is gone, or when it is someone else's. That of a dead one is empty.
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
