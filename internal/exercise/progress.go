package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"example.com/operator-workshop/internal/private"
)

// progressFile returns the path of the file that records progress. For each step that is done, it has a line with the
// stage's folder, the step's ID and the date. A line with the word "break" instead of an ID records a break in the
// copy: the word is followed by the break's name, the date, and the folder with the original file.
func (c *Copy) progressFile() string { return filepath.Join(c.work(), "progress.txt") }

// progress returns the lines about this stage, split into fields.
func (c *Copy) progress() (lines [][]string, err error) {
	content, err := os.ReadFile(c.progressFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the progress: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == filepath.Base(c.Path) {
			lines = append(lines, fields)
		}
	}
	return lines, nil
}

// append adds a line about this stage.
func (c *Copy) append(fields ...string) error {
	line := filepath.Base(c.Path) + " " + strings.Join(fields, " ") + "\n"
	return c.changeProgress(func(content string) string { return content + line })
}

// changeProgress replaces the content of the progress file. It holds a lock while it does so, because several stages
// may be checked at the same time.
func (c *Copy) changeProgress(change func(content string) string) (err error) {
	lock := flock.New(filepath.Join(c.work(), ".progress.lock"))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the progress file: %w", private.Explain(err))
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	content, err := os.ReadFile(c.progressFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the progress: %w", err)
	}
	changed := change(string(content))
	if changed == string(content) {
		return nil
	}
	if err := replaceFile(c.progressFile(), []byte(changed), 0o644); err != nil {
		return fmt.Errorf("write the progress: %w", err)
	}
	return nil
}

// Done returns the IDs of the steps that the progress file records as done.
func (c *Copy) Done() ([]string, error) {
	lines, err := c.progress()
	var done []string
	for _, fields := range lines {
		if fields[1] != breakWord {
			done = append(done, fields[1])
		}
	}
	return done, err
}

// Next returns the index of the first step that is not done, or len(Steps) if all are.
func (c *Copy) Next() (int, error) {
	done, err := c.Done()
	if err != nil {
		return 0, err
	}
	next := slices.IndexFunc(c.Steps, func(step Step) bool { return !slices.Contains(done, step.ID) })
	if next < 0 {
		next = len(c.Steps)
	}
	return next, nil
}

// note records that a step is done.
func (c *Copy) note(step Step) error {
	done, err := c.Done()
	if err != nil || slices.Contains(done, step.ID) {
		return err
	}
	return c.append(step.ID, time.Now().Format(time.DateOnly))
}

// forget removes steps, or the break, from the progress file. Without arguments, it removes all lines about the stage.
func (c *Copy) forget(ids ...string) error {
	return c.changeProgress(func(content string) string {
		var kept strings.Builder
		for line := range strings.Lines(content) {
			fields := strings.Fields(line)
			ours := len(fields) >= 2 && fields[0] == filepath.Base(c.Path)
			if !ours || len(ids) > 0 && !slices.Contains(ids, fields[1]) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	})
}

// Changed returns when a file that a learner writes was last changed, or the zero time if there is no copy. Commands
// such as start and solve also change these files.
func (c *Copy) Changed() (last time.Time, err error) {
	if _, err := os.Stat(c.Path); errors.Is(err, os.ErrNotExist) {
		return time.Time{}, nil
	}
	inFolder := func(string) error { return nil }
	err = c.written(inFolder, func(path string) error {
		info, err := os.Stat(path)
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	return last, err
}
