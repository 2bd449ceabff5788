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
	// phaseCreating is written before kind creates anything. A cluster found in this phase holds no one's work, so it can
	// be recreated.
	phaseCreating phase = "creating"
	// phaseReady is written when the cluster is complete. From then on it may hold a learner's work.
	phaseReady phase = "ready"
)

// record is the content of .workshop/NAME.kind.json.
type record struct {
	Phase phase `json:"phase"`
	// Root is the checkout in which the cluster was made.
	Root string `json:"root"`
	// Container is the ID of the control plane's container.
	Container string `json:"container,omitempty"`
	// Image and Port are what the learner chose when the cluster was created, if anything. A reset keeps them unless it
	// is given others.
	Image string `json:"image,omitempty"`
	Port  int    `json:"port,omitempty"`
}

// errNoRecord means that this checkout has no record of the cluster.
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

// fullDisk returns an error if a program's messages say that the disk or the user's quota is full, and nil otherwise.
func fullDisk(messages string) error {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(messages, cause.Error()) {
			return private.Explain(cause)
		}
	}
	return nil
}
