package exercise

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// givenFile returns the path of a file in the format of sha256sum, with the hashes of the tests that the course has put
// into the copy. If a test still has its hash, the learner has not changed it, so a newer version of the course may
// replace it.
func (c *Copy) givenFile() string {
	return filepath.Join(c.work(), "."+filepath.Base(c.Path)+"-tests.sha256")
}

// given returns the hashes of the tests that the course has put into the copy, by file.
func (c *Copy) given() (map[string]string, error) {
	content, err := os.ReadFile(c.givenFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the hashes of the tests: %w", err)
	}
	hashes := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if hash, name, found := strings.Cut(strings.TrimSpace(line), "  "); found {
			hashes[name] = hash
		}
	}
	return hashes, nil
}

func (c *Copy) writeGiven(hashes map[string]string) error {
	var content strings.Builder
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintf(&content, "%s  %s\n", hashes[name], name)
	}
	if err := replaceFile(c.givenFile(), []byte(content.String()), 0o644); err != nil {
		return fmt.Errorf("write the hashes of the tests: %w", err)
	}
	return nil
}

func hashOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// giveTests puts the tests of the next step and of earlier ones into the copy, so that the learner can read and run
// them before doing the step. It removes tests that the course no longer has. It leaves alone any tests that the
// learner has changed.
func (c *Copy) giveTests() error {
	next, err := c.Next()
	if err != nil {
		return err
	}
	wanted, err := c.Form(min(next+1, len(c.Steps)))
	if err != nil {
		return err
	}
	hashes, err := c.given()
	if err != nil {
		return err
	}
	tests := tree{}
	for name, file := range wanted {
		if !isTest(name) {
			continue
		}
		untouched, err := c.untouched(name, hashes[name], next)
		if err != nil {
			return err
		}
		if untouched {
			tests[name] = file
			hashes[name] = hashOf(file.content)
		}
	}
	if err := tests.write(c.Path); err != nil {
		return fmt.Errorf("write the course's tests: %w", err)
	}
	if err := c.removeDropped(hashes); err != nil {
		return err
	}
	return c.writeGiven(hashes)
}

// untouched reports whether a test in the copy is unchanged or missing. If no hash is known, it compares the test with
// its forms before the first step and after each step up to now.
func (c *Copy) untouched(name, hash string, next int) (bool, error) {
	theirs, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil || hash != "" {
		return hash == hashOf(theirs), err
	}
	for known := next; known >= 0; known-- {
		form, err := c.Form(known)
		if err != nil || bytes.Equal(form[name].content, theirs) {
			return err == nil, err
		}
	}
	return false, nil
}

// dropped returns the tests that the course has put into the copy but no longer has.
func (c *Copy) dropped(hashes map[string]string) ([]string, error) {
	finished, err := c.Form(len(c.Steps))
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range hashes {
		if _, found := finished[name]; !found {
			names = append(names, name)
		}
	}
	return names, nil
}

// removeDropped removes the tests that the course no longer has, and their hashes, unless the learner has changed the
// tests. If they stayed, they might declare the same names as tests that the course now has in other files.
func (c *Copy) removeDropped(hashes map[string]string) error {
	names, err := c.dropped(hashes)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(c.Path, filepath.FromSlash(name))
		theirs, err := os.ReadFile(path)
		if err == nil && hashOf(theirs) != hashes[name] {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a test that the course no longer has: %w", err)
		}
		delete(hashes, name)
	}
	return nil
}

// noteGiven records the hashes of the tests among the files that were put into the copy.
func (c *Copy) noteGiven(files tree) error {
	hashes, err := c.given()
	if err != nil {
		return err
	}
	for name, file := range files {
		if isTest(name) {
			hashes[name] = hashOf(file.content)
		}
	}
	return c.writeGiven(hashes)
}
