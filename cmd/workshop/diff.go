package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"example.com/operator-workshop/internal/exercise"
)

// diff shows what the solution of a step would change in the copy.
func (a *app) diff(ctx context.Context, out io.Writer, own *exercise.Copy, id string) error {
	names, solved, err := own.Compare(id)
	if err != nil {
		return err
	}
	same := true
	for _, name := range names {
		equal, err := printDiff(ctx, out, own, name, solved[name], "solution")
		if err != nil {
			return err
		}
		same = same && equal
	}
	if same {
		fmt.Fprintf(out, "Step %s is the same as in the solution.\n", id)
	}
	return nil
}

// printDiff prints how a file of the copy differs from another version of the file.
func printDiff(ctx context.Context, out io.Writer, own *exercise.Copy, name string, other []byte, called string) (equal bool, err error) {
	folder, err := os.MkdirTemp("", "solution-")
	if err != nil {
		return false, fmt.Errorf("make a folder for the diff: %w", err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, filepath.Base(name))
	if err := os.WriteFile(path, other, 0o600); err != nil {
		return false, fmt.Errorf("write %s/%s: %w", called, name, err)
	}
	theirs := filepath.Join(own.Path, filepath.FromSlash(name))
	if _, err := os.Stat(theirs); err != nil {
		theirs = os.DevNull
	}
	command := exec.CommandContext(ctx, "diff", "-u", "-L", "yours/"+name, "-L", called+"/"+name, theirs, path)
	command.Stdout, command.Stderr = out, out
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare yours/%s with %s/%s: %w", name, called, name, err)
	}
	return true, nil
}
