package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/internal/repo"
)

// goGrace is how long a go command may take to exit after SIGINT.
const goGrace = 5 * time.Second

// Builder builds sets of tools, and links them into bin/ in one folder.
type Builder struct {
	// Root is the folder that gets bin/. For Prefetch, it must be the root of a checkout.
	Root string
	// Cache is a directory that several builders may share. Finished tools are kept in its folder tools/.
	Cache string
	// Platform is the platform that the tools are built for.
	Platform Platform
	// Out receives the progress. Terminal means that Out can redraw a line.
	Out      io.Writer
	Terminal bool
}

// Host returns the platform that this program runs on.
func Host() Platform { return Platform{OS: runtime.GOOS, Arch: runtime.GOARCH} }

// bin returns the folder for the links to the tools: bin/, or bin/OS_ARCH if Platform is not [Host].
func (b Builder) bin() string {
	bin := filepath.Join(b.Root, "bin")
	if b.Platform == Host() {
		return bin
	}
	return filepath.Join(bin, b.Platform.OS+"_"+b.Platform.Arch)
}

// Ensure makes every component of the set available in bin/, or in bin/OS_ARCH if Platform is not [Host]. It builds the
// components that the cache lacks, and returns their number. Builds into the same folder of the cache run one after the
// other. After an interrupted build, only the unfinished components are built.
func (b Builder) Ensure(ctx context.Context, set Set) (int, error) {
	goVersion, err := goVersion(ctx, set.Dir)
	if err != nil {
		return 0, err
	}
	key, err := set.key(goVersion, b.Platform)
	if err != nil {
		return 0, err
	}
	store := filepath.Join(b.Cache, "tools", key)
	if err := makeDir(store, "set "+repo.CacheVariable+" to a directory that you can write to"); err != nil {
		return 0, err
	}
	if err := makeDir(b.bin(), writableCheckout); err != nil {
		return 0, err
	}
	if len(missing(set, store)) > 0 {
		unlock, err := b.lock(ctx, store+".lock")
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	// Check again what is missing, because another build may have made it while this one waited.
	todo := missing(set, store)
	if err := b.build(ctx, set, todo, store); err != nil {
		return 0, err
	}
	for _, component := range set.Components {
		if err := link(filepath.Join(store, component.Name), filepath.Join(b.bin(), component.Name)); err != nil {
			return len(todo), err
		}
	}
	return len(todo), nil
}

func missing(set Set, store string) []Component {
	var todo []Component
	for _, component := range set.Components {
		if info, err := os.Stat(filepath.Join(store, component.Name)); err != nil || info.Mode()&0o100 == 0 {
			todo = append(todo, component)
		}
	}
	return todo
}

// lock locks the file at path, so that only one build at a time writes to the folder of the cache to which the file
// belongs. It prints a line if it has to wait.
func (b Builder) lock(ctx context.Context, path string) (unlock func(), err error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(b.Out, "Another build of these tools is running: waiting for it to finish.")
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = lock.Close() }, nil
}

func (b Builder) build(ctx context.Context, set Set, todo []Component, store string) error {
	if len(todo) == 0 {
		return nil
	}
	fmt.Fprintf(b.Out, "Building the tools pinned in %s for %s (%d of %d); this happens once.\n", relative(b.Root, set.Dir), b.Platform, len(todo), len(set.Components))
	bars := &progress{out: b.Out, terminal: b.Terminal, total: len(todo) + 1, start: time.Now()}
	packages := make([]string, len(todo))
	for i, component := range todo {
		packages[i] = component.Package
	}
	err := bars.run(1, "download modules", func() error {
		return b.goCommand(ctx, set.Dir, filepath.Join(store, "download.log"), append([]string{"list", "-deps"}, packages...)...)
	})
	if err != nil {
		return fmt.Errorf("download the modules of %s: %w", relative(b.Root, set.Dir), err)
	}
	for i, component := range todo {
		err := bars.run(i+2, component.Name, func() error { return b.compile(ctx, set, component, store) })
		if err != nil {
			return fmt.Errorf("build %s: %w", component.Name, err)
		}
	}
	return nil
}

// compile builds a tool under a temporary name, so that a file with the tool's own name is always complete.
func (b Builder) compile(ctx context.Context, set Set, component Component, store string) error {
	target := filepath.Join(store, component.Name)
	partial := target + ".partial"
	err := b.goCommand(ctx, set.Dir, target+".log", "build", "-trimpath", "-ldflags", set.linkerFlags(), "-o", partial, component.Package)
	if err != nil {
		_ = os.Remove(partial)
		return err
	}
	return os.Rename(partial, target)
}

// goCommand runs go in a tools module, outside the workspace and without cgo. It ignores GOOS, GOARCH and GOFLAGS in
// this process's environment. After a failure other than an interruption, the log contains go's standard error. After
// a success, there is no log.
func (b Builder) goCommand(ctx context.Context, dir, log string, args ...string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOOS="+b.Platform.OS, "GOARCH="+b.Platform.Arch)
	command.Stdout = io.Discard
	command.Stderr = &output
	err := procgroup.Run(command, goGrace)
	if err == nil {
		_ = os.Remove(log)
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: run the same command again, which continues where it stopped")
	}
	_ = os.WriteFile(log, output.Bytes(), 0o644)
	return explain(err, output.Bytes())
}

func goVersion(ctx context.Context, dir string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		return "", explain(err, nil)
	}
	return strings.TrimSpace(string(out)), nil
}

// writableCheckout is the advice for a checkout that is not writable.
const writableCheckout = "clone the workshop into a directory of your own"

func makeDir(dir, remedy string) error {
	err := os.MkdirAll(dir, 0o755)
	if errors.Is(err, syscall.ENOSPC) {
		return explain(err, nil)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s (%w): %s", dir, err, remedy)
	}
	return nil
}

// link makes the file called name a link to target, a tool in the cache, unless it already is.
func link(target, name string) error {
	if current, err := os.Readlink(name); err == nil && current == target {
		return nil
	}
	// Create the link under another name and rename it, so that the tool is never missing.
	fresh := fmt.Sprintf("%s.%d", name, os.Getpid())
	_ = os.Remove(fresh)
	if err := os.Symlink(target, fresh); err != nil {
		return fmt.Errorf("cannot write %s (%w): %s", name, err, writableCheckout)
	}
	if err := os.Rename(fresh, name); err != nil {
		return fmt.Errorf("cannot write %s (%w): %s", name, err, writableCheckout)
	}
	return nil
}

func relative(root, dir string) string {
	if rel, err := filepath.Rel(root, dir); err == nil {
		return rel
	}
	return dir
}
