package behaviours

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

var shutdown = behaviour{
	name:    "shutdown",
	promise: "finishes what it has begun when it is told to stop, and leaves nothing running",
	advice: "the context of a reconcile: its requests must not be cancelled at SIGTERM (use context.WithoutCancel with a time limit); " +
		"then everything that Run must wait for before it returns: workers, informers, the event broadcaster, servers",
	alone: true, // the goroutines of the whole process are counted
	check: func(ctx context.Context, runner *trial.Runner) error {
		if err := runner.WaitAllEnded(ctx); err != nil {
			return err
		}
		return runner.Try(ctx, "told to stop while it writes", tryShutdown)
	},
}

// eventDelay is how much longer the kit holds the operator's Events than its first write, so that an Event may still be
// in flight when everything else is done.
const eventDelay = 200 * time.Millisecond

// keptAlive ignores the goroutines of connections. client-go shares its connections and keeps them for the next client;
// the API server may open a new connection to webhooks that the suite serves.
var keptAlive = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	goleak.IgnoreAnyFunction("net/http.(*http2serverConn).readFrames"),
	goleak.IgnoreAnyFunction("net/http/internal/http2.(*serverConn).readFrames"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http/internal/http2.(*ClientConn).readLoop"),
	goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
}

func tryShutdown(ctx context.Context, t *trial.Trial) error {
	resources, err := createTwo(ctx, t)
	if err != nil {
		return err
	}
	before := goleak.IgnoreCurrent()
	hold := holdFirstWrite()
	tap := traffic.New()
	events := make(chan struct{})
	tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.IsEvent() {
			return traffic.Action{Hold: events}
		}
		return hold.rule(request)
	})
	operator := t.StartOn(tap, operatortest.RunOptions{})
	if err := t.Eventually(ctx, "the operator to begin its first write", func(context.Context) error { return hold.reached() }); err != nil {
		return err
	}
	returned := func(context.Context) error {
		select {
		case <-operator.Done:
			return errors.Join(errors.New("its Run has returned"), operator.Err)
		default:
			return nil
		}
	}
	if err := t.Throughout(ctx, trial.Quiet, "the operator to wait for the reply to its write", returned); err != nil {
		return err
	}
	operator.Terminate()
	if err := t.Throughout(ctx, watchedFor, "the operator to wait for its write in flight before it ends", returned); err != nil {
		return err
	}
	close(hold.release)
	time.AfterFunc(eventDelay, func() { close(events) })
	if err := operator.Stop(); err != nil {
		return err
	}
	end := tap.Now()
	if err := drained(ctx, t, resources); err != nil {
		return err
	}
	for _, request := range operator.Writes() {
		if !mayLose(t, request) && (request.Canceled || !request.Done) {
			return fmt.Errorf("expected the operator to finish every write that it began\nfound: %s", request)
		}
	}
	if err := goleak.Find(append(keptAlive, before)...); err != nil {
		return fmt.Errorf("expected no goroutine of the operator to be left after its Run returned\n%w", err)
	}
	for _, request := range tap.Requests() {
		if !mayLose(t, request) && request.At > end {
			return fmt.Errorf("expected no request after Run returned\nfound, %s later: %s", (request.At - end).Round(time.Millisecond), request)
		}
	}
	return nil
}

// mayLose reports whether the operator may leave a request unfinished, or send it after Run has returned: only a
// request for an Event, and only if the operator doesn't drain its queue.
func mayLose(t *trial.Trial, request traffic.Request) bool {
	return request.IsEvent() && !t.Operator.Drains
}

// drained returns an error if an operator that drains its queue left something in it.
func drained(ctx context.Context, t *trial.Trial, resources []*unstructured.Unstructured) error {
	if !t.Operator.Drains {
		return nil
	}
	for _, resource := range resources {
		for _, declared := range t.Operator.Children {
			if _, err := t.Child(ctx, declared, resource); err != nil {
				return fmt.Errorf("expected the operator to finish what was in its queue when it was told to stop\nfound, for %s: %w", resource.GetName(), err)
			}
		}
	}
	return nil
}

// createTwo creates the sample, and a second resource.
func createTwo(ctx context.Context, t *trial.Trial) ([]*unstructured.Unstructured, error) {
	spec, err := t.OtherSpec(ctx)
	if err != nil {
		return nil, err
	}
	resources := []*unstructured.Unstructured{t.Resource(nil), secondResource(t.Runner, spec)}
	return resources, errors.Join(t.Create(ctx, resources[0]), t.Create(ctx, resources[1]))
}
