package operatortest

import (
	"context"
	"fmt"
	"time"

	"example.com/operator-workshop/operatortest/traffic"
)

// instance is one running operator.
type instance struct {
	tap     *traffic.Tap
	cancel  context.CancelFunc
	timeout time.Duration
	// outside tells that it has calls to make that no tap sees.
	outside bool
	// stopped tells that the kit ended it.
	stopped bool
	// done is closed when Run has returned; err is what it returned.
	done chan struct{}
	err  error
}

// start runs an operator that is confined to the trial's namespace.
func (t *trial) start(options RunOptions) *instance { return t.startOn(traffic.New(), options) }

// startOn does the same behind a tap that is set up already.
func (t *trial) startOn(tap *traffic.Tap, options RunOptions) *instance {
	ctx, cancel := context.WithCancel(context.Background())
	started := &instance{tap: tap, cancel: cancel, timeout: t.operator.timeout(), outside: t.operator.External != nil, done: make(chan struct{})}
	options.Namespace = t.namespace
	go func() {
		defer close(started.done)
		started.err = t.operator.Run(ctx, tap.Config(t.config()), options)
	}()
	t.instances = append(t.instances, started)
	t.noteRun(started.done)
	return started
}

// stop tells the operator to end, as SIGTERM does, and waits for it.
func (i *instance) stop() error {
	i.stopped = true
	i.cancel()
	select {
	case <-i.done:
	case <-time.After(i.timeout):
		return fmt.Errorf("expected the operator to end within %s after it was told to\nfound: its Run has not returned", i.timeout)
	}
	if i.err != nil && !i.tap.Killed() {
		return fmt.Errorf("expected the operator to end without an error\nfound: its Run returned %w", i.err)
	}
	return nil
}

// kill ends the operator as kill -9 does: nothing it does from now on has an effect.
// A reconcile may be waiting for what it will never see now, until its time is up. Nobody
// waits for that, unless the operator could still do something outside.
func (i *instance) kill() error {
	i.tap.Kill()
	if i.outside {
		return i.stop()
	}
	i.stopped = true
	i.cancel()
	return nil
}

// writes are the write requests so far, without those of leader election.
func (i *instance) writes() []traffic.Request {
	var writes []traffic.Request
	for _, request := range i.tap.Requests() {
		if request.IsWrite() && !request.IsLease() {
			writes = append(writes, request)
		}
	}
	return writes
}
