package classroom

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/operator-workshop/internal/private"
)

// phase says how far the creation of a cluster got.
type phase string

const (
	// phaseCreating is written before anything is made. A cluster found in it holds
	// nothing that anybody put there, so it can be made again.
	phaseCreating phase = "creating"
	// phaseReady is written when the cluster is complete. From then on it holds a learner's work.
	phaseReady phase = "ready"
)

// record is what .workshop/NAME.kind.json says about a cluster of kind.
type record struct {
	Phase phase `json:"phase"`
	// Root is the checkout the cluster was made in.
	Root string `json:"root"`
	// Container is the ID of the control plane.
	Container string `json:"container,omitempty"`
}

// errNoRecord says that no cluster of that name was ever made here.
var errNoRecord = errors.New("no such cluster")

func readRecord(path string) (record, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, errNoRecord
	}
	if err != nil {
		return record{}, err
	}
	var found record
	if err := json.Unmarshal(content, &found); err != nil {
		return record{}, fmt.Errorf("%s cannot be read (%w)", filepath.Base(path), err)
	}
	if !slices.Contains([]phase{phaseCreating, phaseReady}, found.Phase) {
		return record{}, fmt.Errorf("%s names an unknown phase %q", filepath.Base(path), found.Phase)
	}
	return found, nil
}

func (r record) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return private.WriteFile(path, append(content, '\n'))
}

// fullDisk finds in a program's messages that it had no room to write.
func fullDisk(messages string) error {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(messages, cause.Error()) {
			return private.Explain(cause)
		}
	}
	return nil
}
