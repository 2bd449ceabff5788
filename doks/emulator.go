package doks

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Emulator stands in for DigitalOcean. Make it with New.
type Emulator struct {
	options Options
	routes  []route
	journal journal
	faults  faults
	limits  *limits
	stub    *stubAccess

	// mu guards account, interrupt and addresses.
	mu        sync.Mutex
	account   account
	interrupt Interrupter

	// planes is nil if the clusters have no control planes. addresses maps the clusters' IDs to their planes' addresses.
	planes    Planes
	addresses map[string]string
	wake      chan struct{}
	stop      context.CancelFunc
	working   sync.WaitGroup
}

// Call describes a request that is about to be carried out.
type Call struct {
	// Number is the number of the journal entry.
	Number int
	Method string
	// Path is the URL's path without its query.
	Path string
	// Operation is what is requested, such as "create cluster".
	Operation string
	// Write means that the request may change something.
	Write bool
	// ClusterID is empty if the path names no cluster, as in a create request. ClusterName is the name in a create
	// request, or else that of the cluster with the ID; it is empty if there is no such cluster.
	ClusterID, ClusterName string
}

// Interrupter is a test's code that runs before a call takes effect. If it returns an error, the call is dropped: it
// has no effect, and the client gets no reply. The function that it returns, if not nil, is called right after the
// effect. If that function returns an error, the reply is dropped.
//
// Both run without a lock: they may take their time, kill the client or inspect the Emulator. Concurrent calls are
// interrupted concurrently.
type Interrupter func(Call) (end func() error, err error)

// New makes an Emulator. With a state file, it starts with the clusters that the last Emulator with that file had.
func New(options Options) (*Emulator, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("make the emulator: %w", err)
	}
	stub, err := newStubAccess(options.Clock.Now())
	if err != nil {
		return nil, err
	}
	emulator := &Emulator{
		options: options, limits: newLimits(options), stub: stub,
		planes: options.Planes, addresses: map[string]string{}, wake: make(chan struct{}, 1), stop: func() {},
	}
	emulator.routes = emulator.allRoutes()
	for _, fault := range options.Faults {
		if err := emulator.AddFault(fault); err != nil {
			return nil, err
		}
	}
	if emulator.account, err = readAccount(options.StateFile); err != nil {
		return nil, err
	}
	if emulator.planes != nil {
		emulator.startWorker()
	}
	return emulator, nil
}

// Interrupt makes a test's code run around every call, except for calls that the emulator refuses because of a limit,
// the token, the method, the path, or a body that is unreadable or too large, and calls that a fault ends before they
// take effect. Pass nil to remove the code.
func (e *Emulator) Interrupt(begin Interrupter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.interrupt = begin
}

// Clusters returns all clusters, without a request to the API.
func (e *Emulator) Clusters() []Cluster {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(e.options.Clock.Now())
	views := []Cluster{}
	for _, each := range e.account.Clusters {
		views = append(views, each.view())
	}
	return views
}

// Close stops the background work, which exists only with Planes. The control planes themselves keep running.
func (e *Emulator) Close() {
	e.stop()
	e.working.Wait()
}

// ServeHTTP answers a request. To break a connection on purpose, it panics with http.ErrAbortHandler, which
// net/http's server expects.
func (e *Emulator) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == adminPath || strings.HasPrefix(request.URL.Path, adminPath+"/") {
		e.serveAdmin(writer, request)
		return
	}
	e.serveAPI(writer, request)
}
