package operatortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/traffic"
)

var shutdown = behaviour{
	name:    "shutdown",
	promise: "finishes what it has begun when it is told to end, and leaves nothing running",
	advice: "the context of a reconcile: the one that ends with SIGTERM must not cancel its requests (context.WithoutCancel and a time limit); " +
		"then what Run waits for before it returns: workers, informers, the broadcaster of events, servers",
	check: func(ctx context.Context, lab *lab) error {
		// Goroutines of the whole process are counted.
		if err := lab.allEnded(ctx); err != nil {
			return err
		}
		return lab.try(ctx, func(ctx context.Context, trial *trial) error { return trial.shutDown(ctx) })
	},
}

// eventDelay is how much longer than the first write the events take, so that some are on their way at the very end.
const eventDelay = 200 * time.Millisecond

// keptAlive are goroutines of connections. client-go shares its own and keeps them for the next client; the API server
// may open another one to webhooks that the suite serves.
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

func (t *trial) shutDown(ctx context.Context) error {
	resources, err := t.two(ctx)
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
	operator := t.startOn(tap, RunOptions{})
	if err := t.eventually(ctx, "the operator to begin its first write", func(context.Context) error { return hold.reached() }); err != nil {
		return err
	}
	returned := func(context.Context) error {
		select {
		case <-operator.done:
			return errors.Join(errors.New("its Run has returned"), operator.err)
		default:
			return nil
		}
	}
	if err := t.throughout(ctx, quiet, "the operator to wait for the reply to its write", returned); err != nil {
		return err
	}
	operator.stopped = true
	operator.cancel()
	if err := t.throughout(ctx, watched, "the operator to wait for its write in flight before it ends", returned); err != nil {
		return err
	}
	close(hold.release)
	time.AfterFunc(eventDelay, func() { close(events) })
	if err := operator.stop(); err != nil {
		return err
	}
	end := tap.Now()
	if err := t.drained(ctx, resources); err != nil {
		return err
	}
	for _, request := range operator.writes() {
		if !t.mayLose(request) && (request.Canceled || !request.Done) {
			return fmt.Errorf("expected every write that was begun to be finished\nfound: %s", request)
		}
	}
	if err := goleak.Find(append(keptAlive, before)...); err != nil {
		return fmt.Errorf("expected no goroutine of the operator to be left after its Run returned\n%w", err)
	}
	for _, request := range tap.Requests() {
		if !t.mayLose(request) && request.At > end {
			return fmt.Errorf("expected no request after Run returned\nfound, %s later: %s", (request.At - end).Round(time.Millisecond), request)
		}
	}
	return nil
}

// mayLose tells whether the operator need not finish the request: one for an event, if it ends without waiting for those.
func (t *trial) mayLose(request traffic.Request) bool {
	return request.IsEvent() && !t.operator.Drains
}

// drained returns an error if an operator that works off its queue left something in it.
func (t *trial) drained(ctx context.Context, resources []*unstructured.Unstructured) error {
	if !t.operator.Drains {
		return nil
	}
	for _, resource := range resources {
		for _, declared := range t.operator.Children {
			if _, err := t.child(ctx, declared, resource); err != nil {
				return fmt.Errorf("expected what was in the queue when the operator was told to end to be worked off\nfound, for %s: %w", resource.GetName(), err)
			}
		}
	}
	return nil
}

// two are a resource like the sample and another one beside it.
func (t *trial) two(ctx context.Context) ([]*unstructured.Unstructured, error) {
	spec, err := t.change(ctx)
	if err != nil {
		return nil, err
	}
	resources := []*unstructured.Unstructured{t.resource(nil), t.resource(spec)}
	resources[1].SetName(t.sample.GetName() + "-2")
	return resources, errors.Join(t.create(ctx, resources[0]), t.create(ctx, resources[1]))
}

// firstWrite holds the first write of an operator until release is closed.
type firstWrite struct {
	release, begun chan struct{}
	once           sync.Once
}

func holdFirstWrite() *firstWrite {
	return &firstWrite{release: make(chan struct{}), begun: make(chan struct{})}
}

func (w *firstWrite) rule(request traffic.Request) traffic.Action {
	action := traffic.Action{}
	if request.IsWrite() && !request.IsEvent() && !request.IsLease() {
		w.once.Do(func() {
			close(w.begun)
			action.Hold = w.release
		})
	}
	return action
}

func (w *firstWrite) reached() error {
	select {
	case <-w.begun:
		return nil
	default:
		return fmt.Errorf("it has not tried to write")
	}
}
