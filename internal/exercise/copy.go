package exercise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/internal/keeper"
	"example.com/operator-workshop/internal/private"
	"example.com/operator-workshop/internal/repo"
)

// Copy is a learner's own copy of a stage.
type Copy struct {
	*Stage
	// Path is the folder of the copy.
	Path string
	// Make runs targets of the copy's Makefile.
	Make func(dir string, targets ...string) error
	// Keeper is the command that keeps the checks' control plane running when this process ends (see [keeper.Borrow]). If
	// it is empty, the control plane ends with this process.
	Keeper []string
	// scratch is the folder in which checks leave their control plane for the next check. If it is empty, each check that
	// needs a control plane starts its own.
	scratch string
}

// ShareControlPlane makes checks share a control plane where their CRDs and tests permit it, so that not every check
// has to start one. Call end after the last check. If the checks already share one, neither ShareControlPlane nor end
// does anything.
func (c *Copy) ShareControlPlane(ctx context.Context) (end func() error, err error) {
	if c.scratch != "" {
		return func() error { return nil }, nil
	}
	var giveBack func() error
	if len(c.Keeper) > 0 {
		c.scratch, giveBack, err = keeper.Borrow(ctx, repo.Repo{Root: c.Root}.State(), c.Keeper...)
	} else {
		c.scratch, giveBack, err = controlplane.Scratch()
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		c.scratch = ""
		return giveBack()
	}, nil
}

// workFolder is the folder of the checkout that contains the learner's copies.
const workFolder = "work"

// links are folders of the checkout that a stage's files refer to by relative paths. So the folder that contains a copy
// has links to them.
var links = []string{"bin", "tools", ".workshop"}

// Copy returns the learner's copy of the stage, which may not exist yet.
func (s *Stage) Copy(makeTargets func(dir string, targets ...string) error) *Copy {
	return &Copy{Stage: s, Path: filepath.Join(s.Root, workFolder, filepath.Base(s.Dir)), Make: makeTargets}
}

// work returns the folder that contains the copy, and files about it, such as the progress file.
func (c *Copy) work() string { return filepath.Dir(c.Path) }

// name returns the copy's name for messages.
func (c *Copy) name() string { return workFolder + "/" + filepath.Base(c.Path) }

// Exists returns nil if there is a copy with a go.mod, and otherwise an error that says what to do.
func (c *Copy) Exists() error {
	if len(c.Steps) == 0 {
		return fmt.Errorf("stage %d has no exercises: `make stage-%d` plays its chapter", c.Number, c.Number)
	}
	if _, err := os.Stat(c.Path); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s does not exist: `make stage-%d start` creates it", c.name(), c.Number)
	}
	_, err := os.Stat(filepath.Join(c.Path, "go.mod"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s has no go.mod: `make stage-%d reset` makes a new copy, and keeps the old one in %s/kept", c.name(), c.Number, workFolder)
	}
	return err
}

// Start makes the copy that a learner begins with, and clears the stage's progress. It returns an error if there is a
// copy already.
func (c *Copy) Start() error {
	if len(c.Steps) == 0 {
		return c.Exists()
	}
	if _, err := os.Lstat(c.Path); err == nil {
		return fmt.Errorf("%s exists already: continue with `make stage-%d check`, or start over with `make stage-%d reset`, which keeps it in %s/kept",
			c.name(), c.Number, c.Number, workFolder)
	}
	files, err := c.Form(0)
	if err != nil {
		return err
	}
	if err := c.prepareWork(); err != nil {
		return err
	}
	if err := files.write(c.Path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", c.name(), err), os.RemoveAll(c.Path))
	}
	if err := c.use(); err != nil {
		return errors.Join(err, os.RemoveAll(c.Path))
	}
	if len(c.Stage.Start) > 0 {
		if err := c.Make(c.Path, c.Stage.Start...); err != nil {
			return errors.Join(err, os.RemoveAll(c.Path))
		}
	}
	return errors.Join(c.forget(), c.noteGiven(files), c.giveTests())
}

// prepareWork creates the folder for the copy, and links in it to folders of the checkout.
func (c *Copy) prepareWork() error {
	if err := os.MkdirAll(c.work(), 0o755); err != nil {
		return fmt.Errorf("create the folder for the copies: %w", private.Explain(err))
	}
	for _, name := range links {
		err := os.Symlink(filepath.Join("..", name), filepath.Join(c.work(), name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link %s/%s: %w", workFolder, name, err)
		}
	}
	return nil
}

// workspace guards the copies' Go workspace against concurrent changes by this process.
var workspace sync.Mutex

// use adds the copy to the copies' Go workspace, so that go, gopls and a debugger work in the copy without a flag. From
// the workspace, it removes folders that no longer exist, because Go rejects a workspace that lists a missing folder.
func (c *Copy) use() error {
	workspace.Lock()
	defer workspace.Unlock()
	path := filepath.Join(c.work(), "go.work")
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		content, err = os.ReadFile(filepath.Join(c.Root, "go.work"))
		first, _, _ := strings.Cut(string(content), "use (")
		content = []byte(first)
	}
	if err != nil {
		return fmt.Errorf("read go.work: %w", err)
	}
	own := "use ./" + filepath.Base(c.Path) + "\n"
	var used strings.Builder
	for line := range strings.Lines(string(content)) {
		folder, uses := strings.CutPrefix(strings.TrimSpace(line), "use ./")
		if _, err := os.Stat(filepath.Join(c.work(), folder)); !uses || !errors.Is(err, os.ErrNotExist) {
			used.WriteString(line)
		}
	}
	if !strings.Contains(used.String(), own) {
		used.WriteString(own)
	}
	if used.String() == string(content) {
		return nil
	}
	// A go command in another copy must read either the old file or the new one.
	if err := replaceFile(path, []byte(used.String()), 0o644); err != nil {
		return fmt.Errorf("write %s/go.work: %w", workFolder, err)
	}
	return nil
}

// Reset replaces the copy with a new one, and clears the stage's progress. It returns the folder that contains the old
// copy.
func (c *Copy) Reset() (kept string, err error) {
	if _, err := os.Stat(c.Path); err != nil {
		return "", c.Exists()
	}
	folder, err := c.keepFolder("all")
	if err != nil {
		return "", err
	}
	if err := os.Rename(c.Path, filepath.Join(folder, filepath.Base(c.Path))); err != nil {
		return "", fmt.Errorf("keep %s: %w", c.name(), err)
	}
	return c.relative(folder), c.Start()
}

// keepFolder creates a folder for files of the learner's that are about to be replaced.
func (c *Copy) keepFolder(what string) (string, error) {
	kept := filepath.Join(c.work(), "kept")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return "", fmt.Errorf("create a folder for your old files: %w", private.Explain(err))
	}
	folder := filepath.Join(kept, time.Now().Format("2006-01-02T150405")+"-"+filepath.Base(c.Path)+"-"+what)
	for n := 2; ; n++ {
		err := os.Mkdir(folder, 0o755)
		if err == nil {
			return folder, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("create a folder for your old files: %w", private.Explain(err))
		}
		folder = fmt.Sprintf("%s-%d", strings.TrimSuffix(folder, fmt.Sprintf("-%d", n-1)), n)
	}
}

// keep saves those of the named files that exist in the copy, before they are overwritten. It returns the folder with the
// saved files.
func (c *Copy) keep(what string, names ...string) (string, error) {
	folder, err := c.keepFolder(what)
	if err != nil {
		return "", err
	}
	old := tree{}
	for _, name := range names {
		theirs, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("nothing was changed, because your files could not be kept: %w", err)
		}
		old[name] = file{content: theirs, mode: 0o644}
	}
	if err := old.write(folder); err != nil {
		return "", fmt.Errorf("nothing was changed, because your files could not be kept in %s: %w", c.relative(folder), err)
	}
	return folder, nil
}

// relative returns a path relative to the checkout's root, where learners run make.
func (c *Copy) relative(path string) string {
	short, err := filepath.Rel(c.Root, path)
	if err != nil {
		return path
	}
	return short
}

// written visits the copy's folders and the files that a learner writes there. It leaves out tests, generated and hidden
// files, hidden folders, and the folder bin.
func (c *Copy) written(folder, file func(path string) error) error {
	return filepath.WalkDir(c.Path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(c.Path, path)
		if err != nil {
			return err
		}
		switch hidden := name != "." && strings.HasPrefix(entry.Name(), "."); {
		case entry.IsDir() && (hidden || name == "bin"):
			return filepath.SkipDir
		case entry.IsDir():
			return folder(path)
		case hidden || !entry.Type().IsRegular() || generated(filepath.ToSlash(name)) || isTest(name):
			return nil
		}
		return file(path)
	})
}
