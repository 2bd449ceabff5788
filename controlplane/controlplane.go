package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/internal/private"
)

// startTimeout bounds Up after it has locked the folder. Up takes about 3 s on an idle machine.
const startTimeout = 3 * time.Minute

// Options describe a control plane. The zero value is usable.
type Options struct {
	// Assets is the folder with the programs. If it is empty, FindAssets chooses the folder.
	Assets string
	// Port is the API server's port. 0 means a free port, which is kept until another program takes it.
	Port int
	// Hosts are additional names and addresses for the API server's certificate, for clients that verify the host they
	// connect to. They take effect when certificates are made or renewed.
	Hosts []string
	// Nodes is the number of simulated nodes that a new control plane gets. If it is zero, there are 2; if it is
	// negative, there are none.
	Nodes int
	// Stages are files with additional rules for simulated pods, as objects of kwok's kind Stage. A rule can, for example,
	// keep pods with a certain image from becoming ready. A rule with a weight takes precedence over the package's own
	// rules, which have none.
	Stages []string
	// APIServerFlags are additional flags for kube-apiserver, such as those of its audit log. The keys are the flags' names
	// without the leading dashes.
	APIServerFlags map[string]string
	// Install is called as soon as the API server of a new control plane responds, before any controller starts; see
	// package install. The garbage collector looks for new kinds only every 30 s, but knows those installed here from
	// the start. If the first Up fails or is interrupted, the next attempt calls Install again, perhaps while
	// controllers are running.
	Install func(ctx context.Context, c *ControlPlane) error
	// Out receives a line for each action. If it is nil, the lines are discarded.
	Out io.Writer

	// Temporary means that the data may be lost when the machine crashes, and that Reset isn't needed. The control plane is
	// then faster: etcd doesn't wait for the disk, no snapshot is made, and the components use more memory before they
	// collect garbage. Start sets it.
	Temporary bool

	// remedy says what to do if a program is missing from Assets.
	remedy string
}

// ControlPlane is a control plane in a folder of its own, which may not exist yet. Several processes can use the same one:
// a method that changes it waits until no other process is changing it.
type ControlPlane struct {
	dir     string
	options Options
	// stop ends a control plane that Start made. It is nil for others.
	stop func() error
}

// Open returns the control plane in a folder. It creates nothing; Up does. The components that Up starts run until Down
// or Remove, even after this process has ended. You may move the folder while they run: the next Up finds them, and
// restarts them in the new location.
func Open(dir string, options Options) (*ControlPlane, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		options.Assets, options.remedy, err = locateAssets(options.Assets)
	}
	if err != nil {
		return nil, err
	}
	if options.Port < 0 || options.Port > 65535 {
		return nil, fmt.Errorf("port %d: choose one between 1 and 65535, or 0 for a free one", options.Port)
	}
	if options.Out == nil {
		options.Out = io.Discard
	}
	return &ControlPlane{dir: dir, options: options}, nil
}

// Start makes and starts a control plane for this process alone, in a temporary folder. It runs until Stop is called or
// this process ends, even by kill -9.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	options.Temporary = true
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return nil, fmt.Errorf("make the control plane's folder: %w", private.Explain(err))
	}
	c, err := Open(dir, options)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	if c.stop, err = startWatchdog(dir); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	if err := c.Up(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Scratch makes a temporary folder. Several processes, one after the other, can use the same control plane in a direct
// subfolder: open it with Options.Temporary, and leave it running. When end is called or this process ends, even by
// kill -9, all control planes in direct subfolders end, and the folder is removed.
func Scratch() (dir string, end func() error, err error) {
	if dir, err = os.MkdirTemp("", "controlplane-"); err != nil {
		return "", nil, fmt.Errorf("make a folder for control planes: %w", private.Explain(err))
	}
	if end, err = startWatchdog(dir); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, end, nil
}

// Stop ends a control plane made by Start, and removes its folder. Calling it again does nothing. For a control plane
// that Start didn't make, Stop returns an error.
func (c *ControlPlane) Stop() error {
	if c.stop == nil {
		return errors.New("stop the control plane: it was not made by Start, so use Down or Remove")
	}
	return c.stop()
}

// Dir is the control plane's folder. The package's documentation lists what is in it.
func (c *ControlPlane) Dir() string { return c.dir }

// Assets is the folder with the programs.
func (c *ControlPlane) Assets() string { return c.options.Assets }

// name is the cluster's name in kubeconfigs.
func (c *ControlPlane) name() string { return filepath.Base(c.dir) }

// Down stops all components and keeps the data. Up starts them again. If there is no folder, Down does nothing.
func (c *ControlPlane) Down(ctx context.Context) error {
	unlock, err := c.lockExisting(ctx)
	if err != nil || unlock == nil {
		return err
	}
	defer unlock()
	return c.endAll(ctx)
}

// Remove stops all components and removes the folder with everything in it, even if the folder is damaged. If there is
// no folder, it does nothing.
func (c *ControlPlane) Remove(ctx context.Context) error {
	unlock, err := c.lockExisting(ctx)
	if err != nil || unlock == nil {
		return err
	}
	defer unlock()
	if err := c.endAll(ctx); err != nil {
		return err
	}
	// Remove the record first: without it there is no control plane, so Remove or Up can continue from here if this process
	// is killed.
	if err := removeBelow(c.dir, recordFile); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == lockFile {
			continue
		}
		if err := removeBelow(c.dir, entry.Name()); err != nil {
			return err
		}
	}
	// Once the lock file is gone, a command that is waiting for the lock may create it again. Then the folder belongs
	// to that command.
	if err := errors.Join(removeBelow(c.dir, lockFile), os.Remove(c.dir)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return private.Explain(err)
	}
	return nil
}

// endAll kills every component. etcd loses nothing that it has acknowledged.
func (c *ControlPlane) endAll(ctx context.Context) error {
	return c.end(ctx, Components...)
}

func (c *ControlPlane) end(ctx context.Context, components ...string) error {
	errs := make([]error, len(components))
	var ending sync.WaitGroup
	for i, component := range components {
		ending.Go(func() {
			if err := c.process(component).kill(ctx); err != nil {
				errs[i] = fmt.Errorf("end %s: %w", component, err)
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}

// say reports one action.
func (c *ControlPlane) say(format string, args ...any) {
	fmt.Fprintln(c.options.Out, strings.TrimSpace(fmt.Sprintf(format, args...)))
}
