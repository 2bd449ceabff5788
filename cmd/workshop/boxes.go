package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"example.com/operator-workshop/internal/exercise"
)

func (a *app) stagesWithExercises() (found []*exercise.Stage, err error) {
	stages, err := a.repo.Stages()
	if err != nil {
		return nil, err
	}
	for _, stage := range stages {
		loaded, err := exercise.Load(a.repo, stage)
		if err != nil {
			return nil, err
		}
		if len(loaded.Steps) > 0 {
			found = append(found, loaded)
		}
	}
	return found, nil
}

// fillBoxes writes the boxes of the exercises into the chapters, and tables of the stages' tests into docs/exercises.md.
// With check, it writes nothing, and fails if something is out of date.
func (a *app) fillBoxes(out io.Writer, check bool) error {
	stages, err := a.stagesWithExercises()
	if err != nil {
		return err
	}
	for _, stage := range stages {
		if err := a.fill(out, stage.Chapter, check, stage.FillBoxes); err != nil {
			return err
		}
	}
	return a.fill(out, filepath.Join(a.repo.Root, "docs", "exercises.md"), check, func(text string) (string, error) {
		return exercise.FillPage(text, stages)
	})
}

// fill replaces the text of a page with the result of change. With check, it fails instead if the two differ.
func (a *app) fill(out io.Writer, path string, check bool, change func(text string) (string, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a page to fill: %w", err)
	}
	filled, err := change(string(text))
	if err == nil && check && filled != string(text) {
		err = errors.New("its text about the exercises differs from exercises.yaml: run `make generate`")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.relative(path), err)
	}
	if filled == string(text) {
		return nil
	}
	if err := os.WriteFile(path, []byte(filled), 0o644); err != nil {
		return fmt.Errorf("fill a page: %w", err)
	}
	fmt.Fprintf(out, "filled the exercises in %s\n", a.relative(path))
	return nil
}
