package exercise

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/repo"
)

// Fingerprint is a hash of everything that the result of Verify depends on: the stage, the packages of this repository that its tests import,
// this package, what the chapter shows of the checks, and the pinned tools.
func (s *Stage) Fingerprint(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", "{{if and .Module .Module.Main}}{{.Dir}}{{end}}", "./...")
	command.Dir = s.Dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("list the packages of stage %d: %w: %s", s.Number, err, bytes.TrimSpace(stderr.Bytes()))
	}
	folders := append(strings.Split(strings.TrimSpace(string(output)), "\n"), s.Dir, filepath.Join(s.Root, "internal", "exercise"), filepath.Join(s.Root, "tools"))
	slices.Sort(folders)
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	// A package may embed files, so everything below its folder counts.
	covered := "\x00"
	for _, folder := range folders {
		if folder == covered || strings.HasPrefix(folder, covered+string(filepath.Separator)) {
			continue
		}
		covered = folder
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == "dist"): // build results
				return filepath.SkipDir
			case !entry.Type().IsRegular():
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(s.Root, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(content))
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read what stage %d depends on: %w", s.Number, err)
		}
	}
	text, err := os.ReadFile(s.Chapter)
	if err != nil {
		return "", fmt.Errorf("read the chapter: %w", err)
	}
	for _, step := range s.Steps {
		shown, err := s.shown(string(text), step)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %q\n", step.ID, shown)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// verifiedFile is a file in the user's cache that exists if Verify has succeeded with that fingerprint.
func (s *Stage) verifiedFile(fingerprint string) (string, error) {
	cache, err := repo.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "exercises", fmt.Sprintf("stage-%d-%s", s.Number, fingerprint)), nil
}

// Verified reports whether Verify has succeeded with that fingerprint before.
func (s *Stage) Verified(fingerprint string) (bool, error) {
	path, err := s.verifiedFile(fingerprint)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	return err == nil, nil
}

// NoteVerified records that Verify has succeeded with that fingerprint.
func (s *Stage) NoteVerified(fingerprint string) error {
	path, err := s.verifiedFile(fingerprint)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("record that the exercises are verified: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return fmt.Errorf("record that the exercises are verified: %w", err)
	}
	return nil
}
