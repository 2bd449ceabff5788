package exercise

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"hash"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/repo"
)

// Fingerprint returns a hash of everything that the result of Verify depends on: the stage's files, what the checks
// depend on outside the stage, and what the chapter shows of the checks.
func (s *Stage) Fingerprint(ctx context.Context) (string, error) {
	outside, err := s.outside(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, outside)
	if err := hashFolder(sum, s.Dir); err != nil {
		return "", err
	}
	for _, step := range s.Steps {
		if err := s.hashShown(sum, step); err != nil {
			return "", err
		}
	}
	return hexOf(sum), nil
}

// outside returns a hash of what the checks depend on besides the stage's own files: the Go version, this package, the
// requirements of the module in the checkout's root, the pinned tools, and the packages of this repository that the
// stage and its tests import, without the tests of these packages.
func (s *Stage) outside(ctx context.Context) (string, error) {
	const sources = `{{if and .Module .Module.Main (not .ForTest)}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}`
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", sources, "./...")
	command.Dir, command.Env = s.Dir, Environment()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("list the packages of stage %d: %w: %s", s.Number, err, bytes.TrimSpace(stderr.Bytes()))
	}
	files := slices.DeleteFunc(strings.Split(string(output), "\n"), func(path string) bool { return path == "" || below(path, s.Dir) })
	for _, name := range []string{"go.mod", "go.sum"} {
		files = append(files, filepath.Join(s.Root, name))
	}
	slices.Sort(files)
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	for _, path := range slices.Compact(files) {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read what stage %d depends on: %w", s.Number, err)
		}
		fmt.Fprintf(sum, "%s %x\n", strings.TrimPrefix(path, s.Root), sha256.Sum256(code(path, content)))
	}
	isTest := func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "testdata" }
	if err := hashFiles(sum, filepath.Join(s.Root, "internal", "exercise"), isTest, code); err != nil {
		return "", err
	}
	if err := hashFolder(sum, filepath.Join(s.Root, "tools")); err != nil {
		return "", err
	}
	return hexOf(sum), nil
}

// code returns the content of a file. From Go code, it leaves out the comments, on which no check depends, except for
// directives such as //go:embed.
func code(path string, content []byte) []byte {
	if filepath.Ext(path) != ".go" {
		return content
	}
	var kept bytes.Buffer
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile(path, -1, len(content)), content, nil, scanner.ScanComments)
	for {
		_, kind, text := scan.Scan()
		if kind == token.EOF {
			return kept.Bytes()
		}
		if kind != token.COMMENT || strings.HasPrefix(text, "//go:") {
			fmt.Fprintln(&kept, kind, text)
		}
	}
}

// below reports whether a path is the folder or is in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}

func nothing(string) bool { return false }

func everything(_ string, content []byte) []byte { return content }

// hashFolder adds all files in a folder, except build results, to a hash.
func hashFolder(sum hash.Hash, folder string) error {
	return hashFiles(sum, folder, nothing, everything)
}

// hashFiles adds to a hash, for each file in a folder, its path and what part returns for it. It leaves out build
// results, and files and folders for whose names skipped returns true.
func hashFiles(sum hash.Hash, folder string, skipped func(name string) bool, part func(path string, content []byte) []byte) error {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == "dist" || skipped(entry.Name())):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || skipped(entry.Name()):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %x\n", strings.TrimPrefix(path, folder), sha256.Sum256(part(path, content)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what the exercises depend on: %w", err)
	}
	return nil
}

// hashShown adds to a hash what the chapter shows of a step's check.
func (s *Stage) hashShown(sum hash.Hash, step Step) error {
	shown, err := s.readShown(step)
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%s %q\n", step.ID, shown)
	return nil
}

func hexOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }

// stepFingerprint returns a hash of everything that the verification of one step depends on. In the copy, all earlier
// steps must be solved, and no others.
func (c *Copy) stepFingerprint(outside string, at int) (string, error) {
	step := c.Steps[at]
	after, err := c.Form(at + 1)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q %+v\n", outside, step.Make, step.Checks)
	// Unlike the form before the step, the copy contains what generators wrote in earlier steps.
	if err := hashFolder(sum, c.Path); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(sum, "%s %v %x\n", name, after[name].mode, sha256.Sum256(after[name].content))
	}
	if err := c.hashShown(sum, step); err != nil {
		return "", err
	}
	return hexOf(sum), nil
}

// verifiedFile returns the path of a file in the user's cache that exists once Verify has succeeded with the
// fingerprint of a stage or a step.
func (s *Stage) verifiedFile(fingerprint string) (string, error) {
	cache, err := repo.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "exercises", fmt.Sprintf("stage-%d-%s", s.Number, fingerprint)), nil
}

// Verified reports whether Verify has already succeeded with this fingerprint.
func (s *Stage) Verified(fingerprint string) (bool, error) {
	path, err := s.verifiedFile(fingerprint)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	return err == nil, nil
}

// NoteVerified records that Verify has succeeded with this fingerprint.
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
