package exercise

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/exercise/form"
	"example.com/operator-workshop/internal/private"
)

// tree maps relative paths, with slashes, to files.
type tree map[string]file

type file struct {
	content []byte
	mode    fs.FileMode
	// given means that learners get the file with a step, and need not write it.
	given bool
}

// left names what a copy leaves out, besides compiled tests and profiles: the folders with build results, and the list
// of steps.
var left = []string{"bin", "dist", FileName}

// Form returns the stage's files with the given number of steps done. All calls with the same number return the same tree,
// so don't change it.
func (s *Stage) Form(done int) (tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.forms[done]; found {
		return known, nil
	}
	derived, err := s.derive(done)
	if err != nil {
		return nil, err
	}
	if s.forms == nil {
		s.forms = map[int]tree{}
	}
	s.forms[done] = derived
	return derived, nil
}

func (s *Stage) derive(done int) (tree, error) {
	files := tree{}
	err := filepath.WalkDir(s.Dir, func(found string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(s.Dir, found)
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(left, relative) && entry.IsDir():
			return filepath.SkipDir
		case slices.Contains(left, relative), !entry.Type().IsRegular(), strings.HasSuffix(relative, ".test"), strings.HasSuffix(relative, ".out"):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(found)
		if err != nil {
			return err
		}
		derived, exists, err := form.Derive(relative, content, upTo{s, done})
		if err != nil || !exists {
			return err
		}
		files[filepath.ToSlash(relative)] = file{content: derived, mode: info.Mode().Perm(), given: form.Given(content)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("derive the files of stage %d after %d steps: %w", s.Number, done, err)
	}
	for name, replacer := range s.deeper() {
		if deeper, found := files[name]; found {
			deeper.content = []byte(replacer.Replace(string(deeper.content)))
			files[name] = deeper
		}
	}
	return files, nil
}

// deeper returns, by file, the replacements for its relative paths: a copy is one folder deeper than the stage. For
// both, the context of docker-build is the checkout's root.
func (s *Stage) deeper() map[string]*strings.Replacer {
	stage := filepath.Base(s.Dir)
	return map[string]*strings.Replacer{
		"go.mod":     strings.NewReplacer("=> ../", "=> ../../"),
		"README.md":  strings.NewReplacer("](../", "](../../"),
		"Makefile":   strings.NewReplacer("-t $(IMG) ..\n", "-t $(IMG) ../..\n", "-f - ..;", "-f - ../..;"),
		"Dockerfile": strings.NewReplacer(stage, workFolder+"/"+stage, " ../", " ../../"),
	}
}

// write writes the files into a folder. It replaces each file atomically, so a full disk leaves the old one intact.
func (t tree) write(dir string) error {
	for name, file := range t {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return private.Explain(err)
		}
		if err := replaceFile(target, file.content, file.mode); err != nil {
			return err
		}
	}
	return nil
}

// differing returns the sorted names of the files that differ between two forms.
func differing(before, after tree) []string {
	names := map[string]bool{}
	for name, file := range after {
		old, found := before[name]
		names[name] = !found || !bytes.Equal(old.content, file.content)
	}
	for name := range before {
		if _, found := after[name]; !found {
			names[name] = true
		}
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(names))
}

// generated reports whether the file is written by a generator.
func generated(name string) bool {
	return strings.HasPrefix(path.Base(name), "zz_generated") || strings.Contains(name, "pkg/generated/") || strings.Contains(name, "config/crd/bases/") ||
		strings.HasSuffix(name, "config/rbac/role.yaml") || strings.HasPrefix(name, "bundle/")
}

// isTest reports whether the file contains tests. Checks use the course's version of such files.
func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }
