// Package planes puts real control planes behind emulated clusters. They are made
// of the workshop's own tools, as the classroom's cluster is: programs from bin/,
// run by kwokctl on the loopback address, with simulated nodes.
package planes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/emulator"
	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/repo"
)

// shortestToken is how long a token lasts at least: the API server makes no shorter ones.
const shortestToken = 10 * time.Minute

// Kwok makes a classroom cluster for each emulated one. It keeps all of them in one folder.
type Kwok struct {
	repo repo.Repo
	out  io.Writer
	lock *flock.Flock
}

var _ emulator.Planes = (*Kwok)(nil)

// Open makes the folder, or takes it as it was left. bin has the workshop's tools;
// out receives the commands that are run. One process at a time can have a folder.
func Open(dir, bin string, out io.Writer) (*Kwok, error) {
	dir, dirErr := filepath.Abs(dir)
	bin, binErr := filepath.Abs(bin)
	if err := errors.Join(dirErr, binErr); err != nil {
		return nil, fmt.Errorf("find the folders of the control planes: %w", err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kwokctl")); err != nil {
		return nil, fmt.Errorf("%s has no kwokctl: run `make tools` in the workshop's root, or say with --bin where the tools are", bin)
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if held, err := lock.TryLock(); err != nil || !held {
		return nil, errors.Join(fmt.Errorf("the control planes in %s belong to another emulator that runs", dir), err)
	}
	kwok := &Kwok{repo: repo.Repo{Root: dir}, out: out, lock: lock}
	if err := linkTo(bin, kwok.repo.Bin()); err != nil {
		return nil, errors.Join(fmt.Errorf("lead to the tools: %w", err), lock.Close())
	}
	return kwok, nil
}

// linkTo makes the folder look like a checkout of the workshop, which has its tools in bin/.
func linkTo(bin, link string) error {
	if current, err := os.Readlink(link); err == nil && current == bin {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(bin, link)
}

// Dir is the folder.
func (k *Kwok) Dir() string { return k.repo.Root }

// Close gives the folder back. What runs goes on running.
func (k *Kwok) Close() error { return k.lock.Close() }

// DeleteAll removes every control plane and the folder, and gives that back.
func (k *Kwok) DeleteAll(ctx context.Context) error {
	records, err := filepath.Glob(filepath.Join(k.repo.State(), "*.json"))
	if err != nil {
		return fmt.Errorf("list the control planes: %w", err)
	}
	for _, record := range records {
		if err := k.Delete(ctx, strings.TrimSuffix(filepath.Base(record), ".json")); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(k.repo.Root), k.Close())
}

// cluster is the classroom's cluster for an ID: a UUID without its dashes has just
// the length that the classroom allows.
func (k *Kwok) cluster(id string) (classroom.Cluster, error) {
	return classroom.New(classroom.Options{
		Repo: k.repo, Provider: classroom.Embedded, Name: strings.ReplaceAll(id, "-", ""), Nodes: 1, Out: k.out,
	})
}

// Make starts a control plane, or what of it does not run. The one node that the
// classroom puts into it goes when SetNodes says which there are.
func (k *Kwok) Make(ctx context.Context, id string) (string, error) {
	cluster, err := k.cluster(id)
	if err != nil {
		return "", err
	}
	if err := cluster.Up(ctx); err != nil {
		return "", err
	}
	config, client, err := k.connect(id)
	if err != nil {
		return "", err
	}
	return config.Host, makeAdministrator(ctx, client)
}

// Delete ends a control plane's programs and removes its files.
func (k *Kwok) Delete(ctx context.Context, id string) error {
	cluster, err := k.cluster(id)
	if err != nil {
		return err
	}
	return cluster.Down(ctx)
}

func (k *Kwok) connect(id string) (*rest.Config, kubernetes.Interface, error) {
	cluster, err := k.cluster(id)
	if err != nil {
		return nil, nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig of control plane %s: %w", id, err)
	}
	config.QPS = -1 // there is one client, and a pool's nodes come at once
	config.Timeout = 10 * time.Second
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, nil, fmt.Errorf("read the certificates of control plane %s: %w", id, err)
	}
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}

// Access asks the control plane for a token of its administrator, a service
// account, because a token ends by itself. The API server makes none that ends
// earlier than after ten minutes; ExpiresAt says when it really ends.
func (k *Kwok) Access(ctx context.Context, id string, lifetime time.Duration) (emulator.Access, error) {
	config, client, err := k.connect(id)
	if err != nil {
		return emulator.Access{}, err
	}
	seconds := int64(max(lifetime, shortestToken) / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	granted, err := client.CoreV1().ServiceAccounts(administratorNamespace).CreateToken(ctx, administrator, request, metav1.CreateOptions{})
	if err != nil {
		return emulator.Access{}, fmt.Errorf("make a token for control plane %s: %w", id, err)
	}
	return emulator.Access{
		CertificateAuthority: config.CAData, Token: granted.Status.Token, ExpiresAt: granted.Status.ExpirationTimestamp.Time,
	}, nil
}
