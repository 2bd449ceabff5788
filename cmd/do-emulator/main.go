// Command do-emulator emulates the part of DigitalOcean's API that is about Kubernetes clusters, on this machine and at
// no cost.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"example.com/operator-workshop/doks"
	"example.com/operator-workshop/doks/planes"
)

const (
	// headerLimit bounds how long a client may take to send a request's header, so that connections whose clients never
	// finish it do not pile up.
	headerLimit = 10 * time.Second
	// idleLimit bounds how long a connection stays open between two requests. It is longer than the 90 seconds after which
	// Go's clients close such a connection themselves. Otherwise, the emulator might close it just when a client sends a
	// request.
	idleLimit = 2 * time.Minute
	// stopLimit bounds the removal of the control planes after Ctrl-C. Before the removal, open requests have half as
	// long to end.
	stopLimit = time.Minute
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "do-emulator: %v\n", err)
		os.Exit(1) //nolint:gocritic // the deferred cancel has nothing left to do
	}
}

// run is the entire program except for signals and the exit status.
func run(ctx context.Context, args []string, output io.Writer) error {
	chosen, err := parseFlags(args, output)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	// Listen first: a second emulator, started by mistake on the same address, fails here before it touches the state
	// file of the first.
	listener, err := net.Listen("tcp", chosen.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another program listens on %s: end it, or choose another port with --listen=127.0.0.1:PORT, and give the operator --do-api-url=http://127.0.0.1:PORT", chosen.listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", chosen.listen, err)
	}
	defer listener.Close()
	chosen.options.Log = slog.New(slog.NewTextHandler(output, nil))
	if chosen.clusters == stub {
		return serve(ctx, chosen.options, listener, output)
	}
	return serveKwok(ctx, chosen, listener, output)
}

// serveKwok gives each cluster a real control plane. Without a state file, it removes the control planes when the
// emulator ends, because the next emulator won't know their clusters.
func serveKwok(ctx context.Context, chosen flags, listener net.Listener, output io.Writer) (err error) {
	kwok, err := openPlanes(ctx, chosen, output)
	if err != nil {
		return err
	}
	defer func() {
		if chosen.options.StateFile != "" {
			err = errors.Join(err, kwok.Close())
			return
		}
		// The control planes must be removed even if the context has ended.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err = errors.Join(err, kwok.DeleteAll(cleanup))
	}()
	fmt.Fprintf(output, "The control planes are in %s.\n", kwok.Dir())
	chosen.options.Planes = kwok
	return serve(ctx, chosen.options, listener, output)
}

func openPlanes(ctx context.Context, chosen flags, output io.Writer) (*planes.Kwok, error) {
	if chosen.options.StateFile != "" {
		return planes.Open(chosen.options.StateFile+".planes", chosen.assets, output)
	}
	if err := planes.DeleteLeftovers(ctx, chosen.assets, output); err != nil {
		return nil, err
	}
	return planes.OpenTemporary(chosen.assets, output)
}

// serve answers requests until the context ends.
func serve(ctx context.Context, options doks.Options, listener net.Listener, output io.Writer) error {
	cloud, err := doks.New(options)
	if err != nil {
		return err
	}
	defer cloud.Close()
	server := newServer(ctx, cloud, options.Log)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(output, "The emulator listens on http://%s (Ctrl-C ends it).\n", listener.Addr())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	fmt.Fprintln(output, "Stopping the emulator.")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit/2)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("end the open requests: %w", err), server.Close())
	}
	return nil
}

func newServer(ctx context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// When the emulator ends, so do the requests that a fault is delaying.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}
