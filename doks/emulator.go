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

	// mu guards what follows.
	mu        sync.Mutex
	account   account
	interrupt Interrupter

	// planes are nil where clusters are names only. addresses has those of the planes
	// that were made, by cluster.
	planes    Planes
	addresses map[string]string
	wake      chan struct{}
	stop      context.CancelFunc
	working   sync.WaitGroup
}

// Call is what an Interrupter gets to know about a request that is about to be carried out.
type Call struct {
	// Number is that of the journal's entry.
	Number int
	Method string
	// Path is the URL's path without its query.
	Path string
	// Operation says in words what is asked, such as "create cluster".
	Operation string
	// Write tells that the request may change something.
	Write bool
	// ClusterID is empty for a create, ClusterName where the cluster does not exist.
	ClusterID, ClusterName string
}

// Interrupter is a test's code around a call. Its error drops the call before it
// has an effect: the client gets no reply. What it returns, if it is not nil, is
// called right after the effect, and its error drops the reply.
//
// Both run without a lock: they may take their time, end the client or look at
// the Emulator. Calls that come at the same moment are interrupted at the same moment.
type Interrupter func(Call) (end func() error, err error)

// New makes an Emulator. With a state file it goes on where the last one stopped.
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

// Interrupt runs a test's code around every call that passes authentication, the
// limits and the faults that come before an effect. nil takes it off.
func (e *Emulator) Interrupt(begin Interrupter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.interrupt = begin
}

// Clusters returns all clusters there are, without a request to the API.
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

// Close ends what runs in the background, which is nothing without planes. The
// planes themselves stay: see Planes.
func (e *Emulator) Close() {
	e.stop()
	e.working.Wait()
}

// ServeHTTP answers a request. A connection that breaks on purpose does so by a
// panic with http.ErrAbortHandler, which net/http's server takes as that.
func (e *Emulator) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == adminPath || strings.HasPrefix(request.URL.Path, adminPath+"/") {
		e.serveAdmin(writer, request)
		return
	}
	e.serveAPI(writer, request)
}
