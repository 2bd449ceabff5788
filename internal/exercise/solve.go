package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Solve puts the solution of a step into the copy. If that changes files, Solve runs the step's generators, and returns
// the files and the folder with the old ones, even if a generator fails. Otherwise, it returns nil and "".
func (c *Copy) Solve(id string) (files []string, kept string, err error) {
	files, kept, err = c.solveFiles(id)
	if err != nil || len(files) == 0 {
		return files, kept, err
	}
	step, err := c.Step(id)
	if err != nil || len(step.Make) == 0 {
		return files, kept, err
	}
	if err := c.Make(c.Path, step.Make...); err != nil {
		return files, kept, fmt.Errorf("step %s is solved, and your old files are in %s, but the generated files are out of date: %w", id, kept, err)
	}
	return files, kept, nil
}

// solveFiles does what Solve does, but doesn't run generators.
func (c *Copy) solveFiles(id string) (files []string, kept string, err error) {
	at, before, after, err := c.around(id)
	if err != nil {
		return nil, "", err
	}
	return c.replace(c.Steps[at], "solve", before, after)
}

// Undo removes a step's code from the copy, and records that the step is not done. Files that the step added stay. Like
// Solve, Undo returns the changed files and the folder with the old ones.
func (c *Copy) Undo(id string) (files []string, kept string, err error) {
	at, before, after, err := c.around(id)
	if err != nil {
		return nil, "", err
	}
	files, kept, err = c.replace(c.Steps[at], "reset", after, before)
	if err != nil {
		return nil, "", err
	}
	return files, kept, c.forget(id)
}

// around returns a step's index, and the forms before and after the step.
func (c *Copy) around(id string) (at int, before, after tree, err error) {
	if err := c.Exists(); err != nil {
		return 0, nil, nil, err
	}
	at, err = c.index(id)
	if err != nil {
		return 0, nil, nil, err
	}
	before, err = c.Form(at)
	if err != nil {
		return 0, nil, nil, err
	}
	after, err = c.Form(at + 1)
	return at, before, after, err
}

// replace applies the differences between two forms to the copy, after saving the files that this changes. Files that
// exist only in the first form stay.
func (c *Copy) replace(step Step, what string, before, after tree) (names []string, kept string, err error) {
	grafts, given := tree{}, tree{}
	for _, name := range differing(before, after) {
		path := filepath.Join(c.Path, filepath.FromSlash(name))
		theirs, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("read %s: %w", c.relative(path), err)
		}
		wanted, exists := after[name]
		if !exists {
			continue // the undone step added this file, which does no harm if it stays
		}
		grafted, err := graft(name, theirs, before[name].content, wanted.content)
		if err != nil {
			return nil, "", fmt.Errorf("%s of step %s: %w", name, step.ID, err)
		}
		if string(grafted) != string(theirs) {
			grafts[name] = file{content: grafted, mode: wanted.mode}
			names = append(names, name)
		}
		if string(grafted) == string(wanted.content) {
			given[name] = wanted
		}
	}
	if len(names) == 0 {
		return nil, "", nil
	}
	folder, err := c.keep(what+"-"+step.ID, names...)
	if err != nil {
		return nil, "", err
	}
	if err := grafts.write(c.Path); err != nil {
		return nil, "", fmt.Errorf("write %s, whose old files are in %s: %w", c.name(), c.relative(folder), err)
	}
	return names, c.relative(folder), c.noteGiven(given)
}

// Compare returns the names of the files that a step changes, and their content as Solve would write it.
func (c *Copy) Compare(id string) (names []string, solved map[string][]byte, err error) {
	_, before, after, err := c.around(id)
	if err != nil {
		return nil, nil, err
	}
	solved = map[string][]byte{}
	for _, name := range differing(before, after) {
		theirs, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
		if solved[name], err = graft(name, theirs, before[name].content, after[name].content); err != nil {
			return nil, nil, err
		}
		names = append(names, name)
	}
	return names, solved, nil
}
