package classroom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/operator-workshop/internal/private"
)

// choiceLimit bounds the wait for another command that changes .workshop/kubeconfig, which takes it milliseconds.
const choiceLimit = 10 * time.Second

// lockChoice keeps commands for different clusters from changing .workshop/kubeconfig at once. kubectl itself uses the
// name kubeconfig.lock.
func lockChoice(ctx context.Context, state string) (unlock func(), err error) {
	return lock(ctx, filepath.Join(state, "choice.lock"), io.Discard, choiceLimit)
}

// chooseKubeconfig makes .workshop/kubeconfig lead to the cluster brought up
// last: a fixed path for editors, for the stages' Makefiles and for shells.
func chooseKubeconfig(ctx context.Context, options Options, kubeconfig string) error {
	if options.Aside {
		return nil
	}
	unlock, err := lockChoice(ctx, options.Repo.State())
	if err != nil {
		return err
	}
	defer unlock()
	return point(filepath.Join(options.Repo.State(), "kubeconfig"), filepath.Base(kubeconfig))
}

// point makes or changes a symbolic link in one step.
func point(link, target string) error {
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
	_ = os.Remove(fresh)
	if err := os.Symlink(target, fresh); err != nil {
		return private.Explain(err)
	}
	return os.Rename(fresh, link)
}

// unchoose leads .workshop/kubeconfig away from a cluster that is removed: to the
// newest of the others, or nowhere.
func unchoose(ctx context.Context, state, kubeconfig string) error {
	unlock, err := lockChoice(ctx, state)
	if err != nil {
		return err
	}
	defer unlock()
	link := filepath.Join(state, "kubeconfig")
	if target, err := os.Readlink(link); err != nil || target != filepath.Base(kubeconfig) {
		return nil
	}
	if other := newestBut(state, kubeconfig); other != "" {
		return point(link, filepath.Base(other))
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return private.Explain(err)
	}
	return nil
}

// newestBut is the newest kubeconfig of a complete cluster except one, or "".
func newestBut(state, except string) string {
	all, _ := fs.Glob(os.DirFS(state), "*.kubeconfig") // the pattern is well-formed
	newest, made := "", time.Time{}
	for _, name := range all {
		path := filepath.Join(state, name)
		info, err := os.Stat(path)
		// An embedded cluster has no record: its kubeconfig is written when it is complete.
		kind, recordErr := readRecord(strings.TrimSuffix(path, ".kubeconfig") + ".json")
		complete := errors.Is(recordErr, errNoRecord) || recordErr == nil && kind.Phase != phaseCreating
		if err == nil && complete && path != except && !strings.HasPrefix(name, copyPrefix) && info.ModTime().After(made) {
			newest, made = path, info.ModTime()
		}
	}
	return newest
}
