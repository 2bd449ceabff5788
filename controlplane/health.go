package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	// answerTimeout is how long a component may take to respond before it counts as hung.
	answerTimeout = 10 * time.Second
	// heartbeatTimeout is how old the newest heartbeat of the simulated nodes may be before kwok counts as hung. kwok
	// sends one about every 10 s, but a newly started kwok first waits until its predecessor's leases expire.
	heartbeatTimeout = 3 * leaseSeconds * time.Second
)

// Component describes one of the programs.
type Component struct {
	Name string `json:"name"`
	// PID is the process ID, or 0 if the component isn't running.
	PID int `json:"pid"`
	// Hung means that it is running, but doesn't respond or, for kwok, is suspended or has sent no heartbeat for too
	// long.
	Hung bool `json:"hung,omitempty"`

	// outdated means that Up would now start it with a different command.
	outdated bool
}

// Status says which parts of a control plane are running.
type Status struct {
	// Components describes every program, in the order of the variable Components.
	Components []Component `json:"components"`
	// Ready means that the API server accepts requests. It is false if a component isn't running or doesn't respond.
	Ready bool `json:"ready"`
	// Complete means that Up has succeeded at least once, so the control plane may contain data.
	Complete bool `json:"complete"`
}

// Running reports whether every component is running and responds, and the API server accepts requests.
func (s Status) Running() bool {
	return s.Ready && !slices.ContainsFunc(s.Components, Component.bad)
}

// bad reports whether the component isn't running or is hung.
func (c Component) bad() bool { return c.PID == 0 || c.Hung }

// Status finds out which components are running, which of them are hung, and whether the API server is ready. The error
// is ErrNotFound if there is no control plane, and a *DamagedError if the folder's content can't be used.
func (c *ControlPlane) Status(ctx context.Context) (Status, error) {
	found, err := c.load()
	if err != nil {
		return Status{}, err
	}
	components, err := c.examine(ctx, found)
	if err != nil {
		return Status{}, err
	}
	status := Status{Components: components, Complete: found.Complete}
	// If a component is down or hung, Ready is false anyway, so asking the API server would only waste time.
	if !slices.ContainsFunc(components, Component.bad) {
		status.Ready = c.serves(ctx, found)
	}
	return status, nil
}

// examine finds the components' processes and checks whether each is hung: a process that exists may be stopped, or
// stuck.
func (c *ControlPlane) examine(ctx context.Context, r record) ([]Component, error) {
	found := make([]Component, len(Components))
	errs := make([]error, len(Components))
	var asking sync.WaitGroup
	for i, name := range Components {
		found[i].Name = name
		pid, started, err := c.process(name).await(ctx)
		if err != nil || pid == 0 {
			errs[i] = err
			continue
		}
		found[i].PID, found[i].outdated = pid, started != fingerprint(c.command(r, name))
		asking.Go(func() { found[i].Hung = c.hangs(ctx, r, name, pid) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return found, errors.Join(errs...)
}

// hangs reports whether a process doesn't respond in time. A process that refuses connections counts as still starting.
// For kwok, see heartbeatOver.
func (c *ControlPlane) hangs(ctx context.Context, r record, component string, pid int) bool {
	if component == "kwok" {
		return c.heartbeatOver(ctx, r, pid)
	}
	err := c.ask(ctx, r, component, "/livez", nil)
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// heartbeatOver reports whether kwok is stopped by a signal, or hasn't renewed any node's Lease for too long. kwok has
// no port to ask. If the API server doesn't respond or there are no Leases, only a stopped kwok is noticed.
func (c *ControlPlane) heartbeatOver(ctx context.Context, r record, pid int) bool {
	// T is the state of a stopped process in the output of ps, on Linux and on macOS.
	if state, err := exec.CommandContext(ctx, "ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output(); err == nil && strings.HasPrefix(string(state), "T") {
		return true
	}
	started, startErr := os.Stat(c.process("kwok").file) // written when it was started
	var leases struct {
		Items []struct{ Spec struct{ RenewTime time.Time } }
	}
	err := c.ask(ctx, r, "kube-apiserver", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", &leases)
	if err != nil || startErr != nil || len(leases.Items) == 0 {
		return false
	}
	newest := started.ModTime()
	for _, lease := range leases.Items {
		if lease.Spec.RenewTime.After(newest) {
			newest = lease.Spec.RenewTime
		}
	}
	return time.Since(newest) > heartbeatTimeout
}

// serves reports whether the API server is ready.
func (c *ControlPlane) serves(ctx context.Context, r record) bool {
	return c.ask(ctx, r, "kube-apiserver", "/readyz", nil) == nil
}

func (c *ControlPlane) waitServing(ctx context.Context, r record) error {
	return c.await(ctx, "the API server", func(ctx context.Context) bool { return c.serves(ctx, r) }, essential...)
}

// ask sends a GET request to a component, and decodes the response unless into is nil.
func (c *ControlPlane) ask(ctx context.Context, r record, component, path string, into any) error {
	return c.request(ctx, r, component, http.MethodGet, path, nil, into)
}

// statusError is the error for a response whose status is 300 or higher.
type statusError struct {
	code   int
	answer string
}

func (e statusError) Error() string { return e.answer }

func (c *ControlPlane) request(ctx context.Context, r record, component, method, path string, body, into any) error {
	client, err := c.client(r, component)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, url(r.Ports.of(component)[0], path), bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return statusError{response.StatusCode, fmt.Sprintf("%s of %s returned %s", path, component, response.Status)}
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// client returns a client with a certificate that the component accepts. It trusts only the authority that signed the
// component's own certificate.
func (c *ControlPlane) client(r record, component string) (*http.Client, error) {
	keys := c.pki(r)
	signer, own := authority, "admin"
	if component == "etcd" {
		signer, own = etcdAuthority, "etcd-client"
	}
	pair, err := tls.LoadX509KeyPair(keys.certificate(own), keys.key(own))
	if err != nil {
		return nil, err
	}
	roots, err := certutil.NewPool(keys.certificate(signer))
	if err != nil {
		return nil, err
	}
	secured := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: secured}, Timeout: answerTimeout}, nil
}
