package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/internal/private"
)

// attempts bounds how often Up tries to start the components. It tries again if one of them ends: another program may
// take a port after it has been found free, and before the component listens on it. And on a very slow machine, the
// controller manager gives up on the API server after 10 s.
const attempts = 3

// errEnded marks an error after which another attempt may succeed: a component ended while Up was waiting, and not
// because the disk was full.
var errEnded = errors.New("ended")

// Up starts the control plane. It makes a new one if there is none, starts components that aren't running, and replaces
// those that don't respond, or that were started in another way, such as in another folder or on another port. It
// returns when pods can be created and, if there are nodes, scheduled. The data is kept. If Up is interrupted at any
// point, even by kill -9, calling it again completes the work.
func (c *ControlPlane) Up(ctx context.Context) error {
	if err := checkAssets(c.options.Assets, c.options.remedy); err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.up(ctx)
}

func (c *ControlPlane) up(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout, errTimeLimit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := c.converge(limited)
		if err == nil || limited.Err() != nil || attempt == attempts || !errors.Is(err, errEnded) {
			return err
		}
		c.say("Attempt %d failed (%v): trying again.", attempt, err)
	}
}

// converge compares what is running with what should be running, and changes what differs.
func (c *ControlPlane) converge(ctx context.Context) error {
	found, err := c.load()
	if errors.Is(err, ErrNotFound) {
		found, err = c.create()
	}
	if err != nil {
		return err
	}
	if c.options.Port != 0 && c.options.Port != found.Ports.APIServer {
		return fmt.Errorf("the API server has port %d: to move it to port %d, remove the control plane first", found.Ports.APIServer, c.options.Port)
	}
	if found, err = c.configure(found); err != nil {
		return err
	}
	if err := c.writeFiles(found); err != nil {
		return err
	}
	if err := c.removePartialData(ctx, found); err != nil {
		return err
	}
	if found, err = c.makeRoom(ctx, found); err != nil {
		return err
	}
	if err := c.startComponents(ctx, found, essential...); err != nil {
		return err
	}
	if err := c.waitServing(ctx, found); err != nil {
		return err
	}
	if !found.Complete {
		if err := c.fill(ctx, found); err != nil {
			return err
		}
	}
	if err := c.startComponents(ctx, found, Components...); err != nil {
		return err
	}
	if err := c.waitUsable(ctx, found); err != nil {
		return err
	}
	if found.Complete {
		return nil
	}
	return c.complete(ctx, found)
}

// create chooses ports and makes keys. Nothing takes effect before the record is written.
func (c *ControlPlane) create() (record, error) {
	// An interrupted Remove may have left files.
	for _, name := range []string{"logs", "run", snapshotFile} {
		if err := removeBelow(c.dir, name); err != nil {
			return record{}, err
		}
	}
	made := record{Keys: 1, Data: 1}
	if err := errors.Join(c.removeOthers("etcd-", ""), c.removeOthers("pki-", "")); err != nil {
		return record{}, err
	}
	var err error
	if made.Ports, err = choosePorts(c.options.Port); err != nil {
		return record{}, err
	}
	if err := c.pki(made).make(c.options.Hosts, nil); err != nil {
		return record{}, err
	}
	return made, c.save(made)
}

// configure records the API server's flags and the stages that are given in Options. They stay in use when the control
// plane is opened without any, so that Reset, for example, keeps the audit log.
func (c *ControlPlane) configure(r record) (record, error) {
	configured := r
	if len(c.options.APIServerFlags) > 0 {
		configured.APIServerFlags = c.options.APIServerFlags
	}
	if len(c.options.Stages) > 0 || r.Stages == "" {
		var err error
		if configured.Stages, err = c.writeStages(); err != nil {
			return record{}, err
		}
	}
	if configured.Stages == r.Stages && maps.Equal(configured.APIServerFlags, r.APIServerFlags) {
		return r, nil
	}
	return configured, c.save(configured)
}

// writeFiles makes the folders logs and run, and the kubeconfigs of the components and of the administrator. It removes
// data, keys and stages that are no longer in use.
func (c *ControlPlane) writeFiles(r record) error {
	if err := errors.Join(c.removeOthers("etcd-", c.data(r.Data)), c.removeOthers("pki-", c.pki(r).dir), c.removeOthers(stagesPrefix, r.Stages)); err != nil {
		return err
	}
	for _, name := range []string{"logs", "run"} {
		if err := private.MakeDir(c.path(name)); err != nil {
			return err
		}
	}
	return c.writeKubeconfigs(r)
}

// endWrong stops components that are running but don't respond, and those that Up would now start with a different
// command.
func (c *ControlPlane) endWrong(ctx context.Context, r record) error {
	health, err := c.examine(ctx, r)
	if err != nil {
		return err
	}
	var wrong []string
	for _, each := range health {
		switch {
		case each.PID == 0:
			continue
		case each.Hung:
			c.say("%s does not answer: replacing it.", each.Name)
		case each.outdated:
			c.say("%s was started for another folder or in another way: replacing it.", each.Name)
		default:
			continue
		}
		wrong = append(wrong, each.Name)
	}
	return c.end(ctx, wrong...)
}

// removePartialData removes the data if the control plane was never complete, and etcd isn't running or doesn't
// respond. An etcd that was killed while it was creating its data can start again, but may never elect itself leader.
// Nothing is lost, because Up creates all objects anew.
func (c *ControlPlane) removePartialData(ctx context.Context, r record) error {
	if r.Complete {
		return nil
	}
	pid, _, err := c.process("etcd").await(ctx)
	if err != nil || pid != 0 && !c.hangs(ctx, r, "etcd", pid) {
		return err
	}
	// Components that are running still have the old state in memory.
	if err := c.endAll(ctx); err != nil {
		return err
	}
	return removeBelow(c.dir, filepath.Base(c.data(r.Data)))
}

// startComponents starts the given components, except those that are running.
func (c *ControlPlane) startComponents(ctx context.Context, r record, components ...string) error {
	for _, component := range components {
		pid, _, err := c.process(component).running()
		if err != nil && !errors.Is(err, errNoNumber) {
			return err
		}
		if pid != 0 || err != nil {
			continue
		}
		if err := keepLog(c.log(component)); err != nil {
			return err
		}
		if err := c.process(component).start(ctx, c.command(r, component), c.dir, c.log(component), c.environment()); err != nil {
			return fmt.Errorf("start %s: %w", component, private.Explain(err))
		}
		c.say("Started %s.", component)
	}
	return nil
}

// keepLog moves the log of the previous run aside, so that a component's last message is always from the current run.
func keepLog(path string) error {
	err := os.Rename(path, path+".old")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return private.Explain(err)
}

// await waits until done reports true. It returns an error if one of the given components isn't running, if the context
// ends, or after startTimeout.
func (c *ControlPlane) await(ctx context.Context, what string, done func(context.Context) bool, components ...string) error {
	var ended error
	err := poll(ctx, startTimeout, 10*time.Millisecond, func(ctx context.Context) bool {
		ended = c.anyEnded(components...)
		return ended != nil || done(ctx)
	})
	switch {
	case ended != nil:
		return ended
	case errors.Is(err, errTimeLimit):
		return fmt.Errorf("%w while waiting for %s (logs of the components: %s)", err, what, c.path("logs"))
	case err != nil:
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

// anyEnded returns nil if all of the given components are running. Otherwise it returns an error that says why one of
// them isn't, as far as its log tells.
func (c *ControlPlane) anyEnded(components ...string) error {
	for _, component := range components {
		pid, _, err := c.process(component).running()
		if errors.Is(err, errNoNumber) || pid != 0 {
			continue
		}
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(c.log(component))
		for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			if strings.Contains(string(content), full.Error()) {
				return fmt.Errorf("%s ended: %w", component, private.Explain(full))
			}
		}
		return fmt.Errorf("%s %w: %s (all its messages: %s)", component, errEnded, lastMessage(c.log(component)), c.log(component))
	}
	return nil
}

// fill creates the first objects in a new control plane.
func (c *ControlPlane) fill(ctx context.Context, r record) error {
	if c.options.Install != nil {
		if err := c.options.Install(ctx, c); err != nil {
			return err
		}
	}
	return c.createNodes(ctx, r)
}

// complete records that the new control plane is complete. Unless the control plane is temporary, complete first saves
// its state for Reset.
func (c *ControlPlane) complete(ctx context.Context, r record) error {
	if !c.options.Temporary {
		if err := c.saveSnapshot(ctx, r, c.path(snapshotFile)); err != nil {
			return err
		}
		c.say("Saved a snapshot for resets to %s.", snapshotFile)
	}
	r.Complete = true
	return c.save(r)
}
