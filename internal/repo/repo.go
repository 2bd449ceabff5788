// Package repo finds the root of the workshop's repository, its stages and their chapters, and its cache.
package repo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Repo is a checkout of the workshop.
type Repo struct {
	// Root is the absolute path of the checkout.
	Root string
}

// Stage is a part of the course: a chapter and, in stages 1 to 6, a Go module.
type Stage struct {
	// Number is the N of `make stage-N`.
	Number int
	// Name is the chapter's file name without its extension, such as "1-crd-only".
	Name string
	// Chapter is the absolute path of the chapter.
	Chapter string
	// Dir is the absolute path of the stage's module. It is empty if the stage has none.
	Dir string
}

// marker is a file that only the root of this repository has.
const marker = "cmd/workshop/main.go"

var chapterName = regexp.MustCompile(`^([0-9]+)-.+\.md$`)

// Find returns the checkout that contains dir. Find resolves symbolic links: files and process arguments of a cluster
// contain the checkout's path, so the path must always be the same.
func Find(dir string) (Repo, error) {
	start, err := filepath.Abs(dir)
	if err == nil {
		start, err = filepath.EvalSymlinks(start)
	}
	if err != nil {
		return Repo{}, fmt.Errorf("find the workshop's root: %w", err)
	}
	for root := start; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(marker))); err == nil {
			return Repo{Root: root}, nil
		}
		if root == filepath.Dir(root) {
			return Repo{}, fmt.Errorf("%s is not inside the workshop's repository: change into your clone of it", start)
		}
	}
}

// Bin returns the directory that contains the tools.
func (r Repo) Bin() string { return filepath.Join(r.Root, "bin") }

// State returns the directory for what outlives a command, such as the state of the classroom clusters, and the locks
// of packages leftover and keeper.
func (r Repo) State() string { return filepath.Join(r.Root, ".workshop") }

// Stages returns the stages, sorted by number.
func (r Repo) Stages() ([]Stage, error) {
	entries, err := os.ReadDir(filepath.Join(r.Root, "docs"))
	if err != nil {
		return nil, fmt.Errorf("list the chapters: %w", err)
	}
	var stages []Stage
	for _, entry := range entries {
		match := chapterName.FindStringSubmatch(entry.Name())
		if match == nil {
			continue
		}
		number, err := strconv.Atoi(match[1])
		if err != nil {
			return nil, fmt.Errorf("chapter %s: %w", entry.Name(), err)
		}
		name := strings.TrimSuffix(entry.Name(), ".md")
		stage := Stage{Number: number, Name: name, Chapter: filepath.Join(r.Root, "docs", entry.Name())}
		module := filepath.Join(r.Root, fmt.Sprintf("%02d-%s", number, strings.TrimPrefix(name, match[1]+"-")))
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			stage.Dir = module
		}
		stages = append(stages, stage)
	}
	slices.SortFunc(stages, func(a, b Stage) int { return a.Number - b.Number })
	return stages, nil
}

// Stage returns the stage with the given number, which a learner may write as "1", "01" or "stage-1".
func (r Repo) Stage(number string) (Stage, error) {
	stages, err := r.Stages()
	if err != nil {
		return Stage{}, err
	}
	wanted, err := strconv.Atoi(strings.TrimPrefix(number, "stage-"))
	for _, stage := range stages {
		if err == nil && stage.Number == wanted {
			return stage, nil
		}
	}
	known := make([]string, len(stages))
	for i, stage := range stages {
		known[i] = strconv.Itoa(stage.Number)
	}
	if len(known) == 0 {
		return Stage{}, errors.New("docs/ contains no chapters: this checkout is incomplete")
	}
	return Stage{}, fmt.Errorf("there is no stage %q: choose one of %s", number, strings.Join(known, ", "))
}
