package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	// Registers the metrics of client-go's queues, requests and leader election.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
)

const (
	// readHeaderTimeout bounds how long a client may take to send its request's headers.
	readHeaderTimeout = 10 * time.Second
	// serverStopTimeout bounds how long replies in progress may delay the shutdown.
	serverStopTimeout = time.Second
)

// Servers are the HTTP servers of one run.
type Servers struct {
	list    []*http.Server
	running sync.WaitGroup
}

// StartServers serves metrics and probes at the addresses in the options that are not Disabled. healthy decides what
// /healthz answers, and ready decides what /readyz answers. If StartServers can't listen on an address, it returns an
// error that names the flag.
func StartServers(ctx context.Context, options Options, healthy func(*http.Request) error, ready func() bool) (*Servers, error) {
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", legacyregistry.Handler())
	probes := http.NewServeMux()
	probes.HandleFunc("/healthz", func(writer http.ResponseWriter, request *http.Request) {
		answer(writer, healthy(request))
	})
	probes.HandleFunc("/readyz", func(writer http.ResponseWriter, _ *http.Request) {
		if !ready() {
			answer(writer, errors.New("the caches are not filled yet"))
			return
		}
		answer(writer, nil)
	})

	s := &Servers{}
	if err := s.start(ctx, "--metrics-bind-address", options.MetricsBindAddress, metrics); err != nil {
		return nil, err
	}
	if err := s.start(ctx, "--health-probe-bind-address", options.HealthProbeBindAddress, probes); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Servers) start(ctx context.Context, flag, address string, handler http.Handler) error {
	if address == Disabled {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s=%s: %w: choose another address, or 0 to do without", flag, address, err)
	}
	// With port 0 the system chooses a port, and only the log shows it.
	klog.FromContext(ctx).Info("Serving", "flag", flag, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	s.list = append(s.list, server)
	s.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "A server ended", "address", address)
		}
	})
	return nil
}

// Stop ends the servers: requests in progress get a moment, then their connections are cut.
func (s *Servers) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), serverStopTimeout)
	defer cancel()
	for _, server := range s.list {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	s.running.Wait()
}

// answer replies in the form that a kubelet understands: 200, or 500 and the reason.
func answer(writer http.ResponseWriter, problem error) {
	if problem != nil {
		http.Error(writer, problem.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(writer, "ok")
}
