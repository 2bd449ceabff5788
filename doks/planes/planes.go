// Package planes puts real control planes with simulated nodes behind emulated clusters.
package planes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
	"example.com/operator-workshop/doks"
)

// shortestToken is the shortest lifetime of a token that the API server accepts.
const shortestToken = 10 * time.Minute

// Kwok makes a control plane for each emulated cluster. It keeps all of them in one folder.
type Kwok struct {
	dir, assets string
	out         io.Writer
	lock        *flock.Flock
}

var _ doks.Planes = (*Kwok)(nil)

// Open creates the folder, or opens an existing one with the control planes in it. assets is the folder with the control
// plane's programs; if it is "", [controlplane.FindAssets] finds them. Progress is written to out. Only one process at a
// time can use a folder.
func Open(dir, assets string, out io.Writer) (*Kwok, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the control planes: %w", err)
	}
	if assets == "" {
		assets, err = controlplane.FindAssets()
	} else {
		err = controlplane.CheckAssets(assets)
	}
	if err != nil {
		return nil, err
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the folder of the control planes: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("another emulator uses the control planes in %s: end it, or choose another folder", dir)
	}
	return &Kwok{dir: dir, assets: assets, out: out, lock: lock}, nil
}

// Dir returns the folder.
func (k *Kwok) Dir() string { return k.dir }

// Close releases the folder. The control planes keep running.
func (k *Kwok) Close() error { return k.lock.Close() }

// DeleteAll removes every control plane and the folder, and releases the folder. If it can't remove a control plane, it
// stops there, and doesn't release the folder.
func (k *Kwok) DeleteAll(ctx context.Context) error {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return fmt.Errorf("list the control planes: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := k.Delete(ctx, entry.Name()); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.RemoveAll(k.dir), k.Close())
}

// plane returns the control plane with the given ID. Its only nodes are those that SetNodes makes.
func (k *Kwok) plane(id string) (*controlplane.ControlPlane, error) {
	return controlplane.Open(filepath.Join(k.dir, id), controlplane.Options{Assets: k.assets, Nodes: -1, Out: k.out})
}

// Make starts a control plane, or those of its programs that are not running. It also makes the administrator.
func (k *Kwok) Make(ctx context.Context, id string) (string, error) {
	plane, err := k.plane(id)
	if err != nil {
		return "", err
	}
	if err := plane.Up(ctx); err != nil {
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
	plane, err := k.plane(id)
	if err != nil {
		return err
	}
	return plane.Remove(ctx)
}

func (k *Kwok) connect(id string) (*rest.Config, kubernetes.Interface, error) {
	plane, err := k.plane(id)
	if err != nil {
		return nil, nil, err
	}
	config, err := install.Config(plane)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to control plane %s: %w", id, err)
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}

// Access requests a token for the control plane's administrator, which is a service account because its tokens expire by
// themselves. The API server doesn't issue tokens that last less than ten minutes, so ExpiresAt may be later than
// requested.
func (k *Kwok) Access(ctx context.Context, id string, lifetime time.Duration) (doks.Access, error) {
	config, client, err := k.connect(id)
	if err != nil {
		return doks.Access{}, err
	}
	seconds := int64(max(lifetime, shortestToken) / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	granted, err := client.CoreV1().ServiceAccounts(administratorNamespace).CreateToken(ctx, administrator, request, metav1.CreateOptions{})
	if err != nil {
		return doks.Access{}, fmt.Errorf("make a token for control plane %s: %w", id, err)
	}
	return doks.Access{
		CertificateAuthority: config.CAData, Token: granted.Status.Token, ExpiresAt: granted.Status.ExpirationTimestamp.Time,
	}, nil
}
