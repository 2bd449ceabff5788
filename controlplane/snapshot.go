package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"example.com/operator-workshop/internal/private"
	"example.com/operator-workshop/internal/procgroup"
)

// snapshotFile contains the control plane's data after the first successful Up, for Reset.
const snapshotFile = "fresh.db"

// revisionsApart is how much each restore of a snapshot advances etcd's revision, counted from the previous restore or
// from the snapshot, whichever is higher. That is more than the number of writes between two restores. So a revision that
// a client has seen doesn't come back with different content, and the client is told to list again, as after a
// compaction.
// Source: `etcdutl snapshot restore --bump-revision`, which was made for Kubernetes.
const revisionsApart = 10_000_000

// Snapshot saves all data of the control plane to a file that only its owner can read. etcd must be running.
func (c *ControlPlane) Snapshot(ctx context.Context, path string) error {
	path, err := filepath.Abs(path) // etcd's tools run in the control plane's folder
	if err != nil {
		return err
	}
	unlock, err := c.lockFound(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := c.load()
	if err != nil {
		return err
	}
	if err := c.saveSnapshot(ctx, found, path); err != nil {
		return err
	}
	c.say("Saved a snapshot to %s.", path)
	return nil
}

func (c *ControlPlane) saveSnapshot(ctx context.Context, r record, path string) error {
	_, err := c.run(ctx, "etcdctl", append(c.etcdFlags(r), "snapshot", "save", path)...)
	return err
}

// Reset returns the control plane's data to its state after the first successful Up. If the control plane has never
// been ready, Reset does the same as Up. Reset is atomic: if it is interrupted, either all of the later data is still
// there or none of it. Reset also works while components are down. Afterwards, all components are running. If
// Options.Temporary was set for the first successful Up, there is no snapshot to reset to, so Reset returns an error.
func (c *ControlPlane) Reset(ctx context.Context) error {
	return c.Restore(ctx, c.path(snapshotFile))
}

// Restore atomically replaces the control plane's data with that of a snapshot, and starts the control plane. If the
// control plane has never been ready, there is no data to replace: Restore then ignores the snapshot, and does the same
// as Up.
func (c *ControlPlane) Restore(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	unlock, err := c.lockFound(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := c.load()
	if err != nil {
		return err
	}
	if !found.Complete {
		return c.up(ctx) // there is no data yet
	}
	if _, err := os.Stat(path); err != nil {
		if path == c.path(snapshotFile) {
			return &DamagedError{snapshotFile + ", the snapshot that reset restores, is missing"}
		}
		return fmt.Errorf("restore a snapshot: %w", err)
	}
	revision, err := c.revisionOf(ctx, path)
	if err != nil {
		return err
	}
	next := found
	next.Data++
	next.Revision = max(found.Revision, revision) + revisionsApart
	if err := removeBelow(c.dir, filepath.Base(c.data(next.Data))); err != nil {
		return err
	}
	peer := url(found.Ports.EtcdPeer, "")
	_, err = c.run(ctx, "etcdutl", "snapshot", "restore", path, "--data-dir", c.data(next.Data), "--name", memberName,
		"--initial-cluster", memberName+"="+peer, "--initial-advertise-peer-urls", peer,
		"--bump-revision", strconv.Itoa(next.Revision-revision), "--mark-compacted")
	if err != nil {
		return err
	}
	c.say("Restored %s.", filepath.Base(path))
	// Components that are running still have the old state in memory.
	if err := c.endAll(ctx); err != nil {
		return err
	}
	if err := c.save(next); err != nil {
		return err
	}
	return c.up(ctx)
}

// revisionOf returns etcd's revision at the time when a snapshot was saved.
func (c *ControlPlane) revisionOf(ctx context.Context, path string) (int, error) {
	output, err := c.run(ctx, "etcdutl", "snapshot", "status", path, "--write-out", "json")
	if err != nil {
		return 0, err
	}
	var status struct {
		Revision int `json:"revision"`
	}
	if err := json.Unmarshal(output, &status); err != nil {
		return 0, fmt.Errorf("read the revision of the snapshot %s: %w", path, err)
	}
	return status.Revision, nil
}

// RenewCertificates replaces the certificate authorities and the components' certificates: previously issued
// kubeconfigs no longer work. The data is kept, and service accounts' tokens stay valid. The file at KubeconfigPath is
// replaced, too. Afterwards, all components are running.
func (c *ControlPlane) RenewCertificates(ctx context.Context) error {
	unlock, err := c.lockFound(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := c.load()
	if err != nil {
		return err
	}
	serviceAccounts, err := os.ReadFile(c.pki(found).key("service-accounts"))
	if err != nil {
		return err
	}
	next := found
	next.Keys++
	if err := c.pki(next).make(c.options.Hosts, serviceAccounts); err != nil {
		return err
	}
	if err := c.save(next); err != nil {
		return err
	}
	return c.up(ctx) // replaces every component: each was started with the old certificates
}

// etcdFlags returns the flags with which etcdctl reaches the control plane's etcd.
func (c *ControlPlane) etcdFlags(r record) []string {
	keys := c.pki(r)
	return []string{
		"--endpoints=" + url(r.Ports.Etcd, ""), "--cacert=" + keys.certificate(etcdAuthority),
		"--cert=" + keys.certificate("etcd-client"), "--key=" + keys.key("etcd-client"),
	}
}

// EtcdEnvironment returns the variables, as NAME=value, with which etcdctl reaches the control plane's etcd.
func (c *ControlPlane) EtcdEnvironment() ([]string, error) {
	found, err := c.load()
	if err != nil {
		return nil, err
	}
	var variables []string
	for _, flag := range c.etcdFlags(found) {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		variables = append(variables, "ETCDCTL_"+strings.ToUpper(name)+"="+value)
	}
	return variables, nil
}

// run runs one of etcd's tools, and returns what it writes to its standard output.
func (c *ControlPlane) run(ctx context.Context, tool string, args ...string) ([]byte, error) {
	path := filepath.Join(c.options.Assets, tool)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s is missing: build it, or choose a folder that has it", path)
	}
	var output, messages bytes.Buffer
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `umask 077; exec "$@"`, "sh", path}, args...)...)
	command.Dir, command.Env = c.dir, c.environment()
	command.Stdout, command.Stderr = &output, &messages
	// In a process group of its own, the tool doesn't get the terminal's Ctrl-C: the context stops it.
	procgroup.Isolate(command)
	err := command.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			if strings.Contains(messages.String(), full.Error()) {
				return nil, private.Explain(full)
			}
		}
		return nil, fmt.Errorf("%s: %w: %s", tool, err, strings.Join(strings.Fields(messages.String()), " "))
	}
	return output.Bytes(), nil
}
