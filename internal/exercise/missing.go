package exercise

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// missing returns the sorted names of the files that the copy should have at this point but lacks. It leaves out files
// that generators write, and tests, because checks use the course's tests.
func (c *Copy) missing() ([]string, error) {
	wanted, err := c.wanted()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		_, err := os.Lstat(filepath.Join(c.Path, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) && !isTest(name) && !generated(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// wanted returns the form in which all steps before the next one are done.
func (c *Copy) wanted() (tree, error) {
	next, err := c.Next()
	if err != nil {
		return nil, err
	}
	return c.Form(next)
}

// nameMissing adds to a finding the names of the files that the copy lacks. Learners may name their Go files as they
// like, so missing Go files count only if the check failed without a failed test: for example, because the program does
// not compile or a generator fails.
func (c *Copy) nameMissing(finding *Finding) error {
	names, err := c.missing()
	if len(finding.failures) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) == ".go" })
	}
	finding.Missing = names
	return err
}

// Restore adds the files that the copy lacks, in the form that they have at this point, and returns their names. It
// changes no other files.
func (c *Copy) Restore() ([]string, error) {
	if err := c.Exists(); err != nil {
		return nil, err
	}
	wanted, err := c.wanted()
	if err != nil {
		return nil, err
	}
	names, err := c.missing()
	if err != nil {
		return nil, err
	}
	files := tree{}
	for _, name := range names {
		files[name] = wanted[name]
	}
	if err := files.write(c.Path); err != nil {
		return nil, fmt.Errorf("put the missing files back into %s: %w", c.name(), err)
	}
	return names, nil
}
