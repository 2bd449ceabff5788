//go:build e2e

// Command emulator runs the emulator of DigitalOcean's API in a pod. The command do-emulator, for use on your own
// machine, listens only on the loopback address. In a cluster, the operator's pods must be able to reach the emulator,
// and may send their token only over TLS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/operator-workshop/doks"
)

const (
	headerLimit = 10 * time.Second
	// idleLimit is longer than the 90 seconds after which Go's clients close an unused connection themselves.
	idleLimit = 2 * time.Minute
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "emulator: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	options := doks.Defaults()
	address := flag.String("listen", ":8443", "`address` to listen on")
	certificates := flag.String("certificates", "/certificates", "`folder` with tls.crt and tls.key")
	token := flag.String("token", "", "`token` that may do everything")
	flag.DurationVar(&options.ProvisionTime, "provision-time", options.ProvisionTime, "`time` that provisioning a cluster takes")
	flag.DurationVar(&options.NodeTime, "node-time", options.NodeTime, "`time` that a node takes to start, to drain and to be removed")
	flag.DurationVar(&options.DeleteTime, "delete-time", options.DeleteTime, "`time` that deleting a cluster takes")
	flag.Parse()
	options.Tokens = []string{*token}
	options.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	cloud, err := doks.New(options)
	if err != nil {
		return err
	}
	defer cloud.Close()
	server := &http.Server{Addr: *address, Handler: cloud, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err = server.ListenAndServeTLS(*certificates+"/tls.crt", *certificates+"/tls.key")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}
