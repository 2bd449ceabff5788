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

// choiceLimit bounds the wait while another command changes .workshop/kubeconfig, which takes milliseconds.
const choiceLimit = 10 * time.Second

// lockChoice keeps commands, even for different clusters, from changing .workshop/kubeconfig at the same time. Its lock
// can't be named kubeconfig.lock, because kubectl itself uses that name.
func lockChoice(ctx context.Context, state string) (unlock func(), err error) {
	return lock(ctx, filepath.Join(state, "choice.lock"), io.Discard, choiceLimit)
}

// choose points .workshop/kubeconfig at a cluster, so that editors, shells and the stages' Makefiles have a fixed path.
// See Cluster.Choose.
func choose(ctx context.Context, options Options, kubeconfig string) error {
	unlock, err := lockChoice(ctx, options.Repo.State())
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil // another command has just removed the cluster
	}
	link := filepath.Join(options.Repo.State(), "kubeconfig")
	if _, err := os.Stat(link); err == nil && options.Name != DefaultName {
		return nil
	}
	return point(link, filepath.Base(kubeconfig))
}

// point creates or changes a symbolic link atomically.
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

// unchoose gets the path of a removed cluster's kubeconfig. If the link .workshop/kubeconfig points there, unchoose
// points the link at the newest remaining cluster or, if there is none, removes the link. Call it after removing the
// cluster's kubeconfig: without that file, choose leaves the link alone.
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

// newestBut returns the path of the newest kubeconfig of a complete cluster, or "". It ignores the path in except, and
// copies of the learner's own kubeconfigs.
func newestBut(state, except string) string {
	all, _ := fs.Glob(os.DirFS(state), "*.kubeconfig") // the pattern is well-formed
	newest, made := "", time.Time{}
	for _, name := range all {
		path := filepath.Join(state, name)
		info, err := os.Stat(path)
		// An embedded cluster has no record: its kubeconfig is written only once the cluster is complete.
		kind, recordErr := readRecord(strings.TrimSuffix(path, ".kubeconfig") + ".json")
		complete := errors.Is(recordErr, errNoRecord) || recordErr == nil && kind.Phase != phaseCreating
		if err == nil && complete && path != except && !strings.HasPrefix(name, copyPrefix) && info.ModTime().After(made) {
			newest, made = path, info.ModTime()
		}
	}
	return newest
}
