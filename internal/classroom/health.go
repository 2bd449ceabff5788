package classroom

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

const (
	// answerLimit is how long a component may take to answer until it counts as hung.
	answerLimit = 10 * time.Second
	// heartbeatLimit is how old the newest heartbeat of the simulated nodes may be. kwok renews them every 10 s, but a
	// kwok that has just started first waits until the leases of the one before expire, after 40 s.
	heartbeatLimit = 2 * time.Minute
)

// health is what the components of a cluster say when they are asked.
type health struct {
	// dead components do not run. hung ones run, but don't answer or do nothing.
	dead, hung []string
	// ready tells whether the API server serves.
	ready bool
}

func (h health) good() bool { return len(h.dead) == 0 && len(h.hung) == 0 && h.ready }

// examine asks every component whether it is well: a process that exists may be stopped, or stuck.
func (e *embedded) examine(ctx context.Context, chosen ports) (health, error) {
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return health{}, err
	}
	client, err := e.client()
	if err != nil {
		return health{}, err
	}
	defer client.CloseIdleConnections()
	found := health{dead: dead(alive)}
	urls := map[string]string{
		"etcd":                    local(chosen.Etcd, "/livez"),
		"kube-apiserver":          local(chosen.APIServer, "/livez"),
		"kube-controller-manager": local(chosen.ControllerManager, "/livez"),
		"kube-scheduler":          local(chosen.Scheduler, "/livez"),
	}
	silent := make([]bool, len(componentNames))
	var asking sync.WaitGroup
	for i, name := range componentNames {
		switch {
		case len(alive[name]) == 0:
		case urls[name] != "":
			asking.Go(func() { silent[i] = isSilent(ask(ctx, client, urls[name], nil)) })
		default:
			asking.Go(func() { silent[i] = e.heartbeatOver(ctx, client, chosen, alive[name][0]) })
		}
	}
	asking.Go(func() { found.ready = ask(ctx, client, local(chosen.APIServer, "/readyz"), nil) == nil })
	asking.Wait()
	for i, name := range componentNames {
		if silent[i] {
			found.hung = append(found.hung, name)
		}
	}
	if ctx.Err() != nil {
		return health{}, contextError(ctx)
	}
	return found, nil
}

// isSilent recognizes that a program took a connection and did not answer. One that refuses connections is starting.
func isSilent(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// heartbeatOver tells whether kwok has not renewed the lease of any node for too long. It serves no port to ask.
func (e *embedded) heartbeatOver(ctx context.Context, client *http.Client, chosen ports, kwok *process.Process) bool {
	if stopped(ctx, kwok) {
		return true
	}
	var leases struct {
		Items []struct{ Spec struct{ RenewTime time.Time } }
	}
	err := ask(ctx, client, local(chosen.APIServer, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"), &leases)
	started, startErr := kwok.CreateTimeWithContext(ctx)
	newest := time.UnixMilli(started)
	for _, lease := range leases.Items {
		if lease.Spec.RenewTime.After(newest) {
			newest = lease.Spec.RenewTime
		}
	}
	return err == nil && startErr == nil && len(leases.Items) > 0 && time.Since(newest) > heartbeatLimit
}

// serves tells whether the API server answers and is ready.
func (e *embedded) serves(ctx context.Context, chosen ports) bool {
	client, err := e.client()
	if err != nil {
		return false
	}
	defer client.CloseIdleConnections()
	return ask(ctx, client, local(chosen.APIServer, "/readyz"), nil) == nil
}

// client has the administrator's certificate, which all components accept, and accepts only theirs.
func (e *embedded) client() (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(e.pki("admin.crt"), e.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(e.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	secured := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: secured}, Timeout: answerLimit}, nil
}

// pki is the path of one of the cluster's keys and certificates.
func (e *embedded) pki(name string) string { return filepath.Join(e.dir, "pki", name) }

func local(port int, path string) string {
	return fmt.Sprintf("https://%s:%d%s", loopback, port, path)
}

// ask makes a request, and reads the answer if it is wanted.
func ask(ctx context.Context, client *http.Client, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}
