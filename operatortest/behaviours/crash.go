package behaviours

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// maxWrites bounds the writes of an operator in one lifecycle. One that has not
// finished by then does not come to rest.
const maxWrites = 60

var crash = behaviour{
	name:    "crash",
	promise: "goes on where it was when it dies, whichever write that cuts off: nothing is lost, nothing is there twice",
	advice: "what is kept between two writes: memory is gone, so read the world again in every reconcile; do the work first and write down that it is done " +
		"after it, and make the work such that doing it twice does no harm: names that follow from the resource, and its UID as a key for the world outside; " +
		"when a resource is deleted, clean up first and take the finalizer off last",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, err := newLifecycle(ctx, runner)
		if err != nil {
			return err
		}
		var number atomic.Int64
		var over atomic.Bool
		return trial.Each(ctx, trial.ParallelTrials, func(ctx context.Context, _ int) error {
			for !over.Load() {
				write := int(number.Add(1))
				if write > maxWrites {
					return fmt.Errorf("expected the operator to be done with a resource's whole life within %d writes\nfound more", maxWrites)
				}
				reached, err := crashAt(ctx, runner, life, write)
				if err != nil {
					return err
				}
				if !reached {
					over.Store(true)
				}
			}
			return nil
		})
	},
}

// crashAt plays a lifecycle in which one operator dies right before a write, the
// next one right after its first write, which most likely is the same, and a third one
// finishes the work: one trial for each write. It tells whether it came to that write.
func crashAt(ctx context.Context, runner *trial.Runner, life *lifecycle, write int) (reached bool, err error) {
	before, after := &crashPoint{write: write, before: true}, &crashPoint{write: 1}
	err = runner.Try(ctx, fmt.Sprintf("around write %d", write), func(ctx context.Context, t *trial.Trial) error {
		operators := &supervisor{Trial: t, crashPoints: []*crashPoint{before, after}}
		operators.start()
		operators.synced = true // every other behaviour watches an operator that was never killed
		defer func() { operators.restore() }()
		t.BeforeLook = operators.restartKilled
		if err := runLifecycle(ctx, t, life, operators.waitSynced); err != nil {
			return fmt.Errorf("%s%s%w", before, after, err)
		}
		return nil
	})
	return before.String() != "", err
}

// crashPoint kills an operator at one of its writes, to the API server or to the
// world outside: right before it takes effect, or right after.
type crashPoint struct {
	write  int
	before bool
	tap    *traffic.Tap

	mu     sync.Mutex
	writes int
	victim string
}

// attach lets the crash point look at the writes of the next operator.
func (p *crashPoint) attach(operators *supervisor, tap *traffic.Tap) {
	p.tap = tap
	tap.SetRule(p.decide)
	if outside, can := operators.Operator.External.(operatortest.Interrupter); can {
		operators.restore = outside.Interrupt(operators.Namespace, p.begin)
	}
}

// String is a line that says when the crash point struck, and empty if it did not.
func (p *crashPoint) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.victim == "" {
		return ""
	}
	when := "after"
	if p.before {
		when = "before"
	}
	return fmt.Sprintf("an operator was killed right %s its write %d took effect: %s\n", when, p.write, p.victim)
}

// counts counts a write, and tells whether it is the one.
func (p *crashPoint) counts(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	if p.writes != p.write {
		return false
	}
	p.victim = what
	return true
}

// decide is the rule for requests to the API server.
func (p *crashPoint) decide(request traffic.Request) traffic.Action {
	if !request.IsWrite() || request.IsEvent() || request.IsLease() || !p.counts(request.Kind()) {
		return traffic.Action{}
	}
	if p.before {
		return traffic.Action{Kill: true, Drop: traffic.ErrKilled}
	}
	return traffic.Action{Kill: true}
}

// begin is called before a call to the world outside, and returns what is called after it.
func (p *crashPoint) begin(call string) (end func() error, err error) {
	if p.tap.Killed() {
		return nil, traffic.ErrKilled
	}
	struck := p.counts(call)
	if struck && p.before {
		p.tap.Kill()
		return nil, traffic.ErrKilled
	}
	return func() error {
		if struck {
			p.tap.Kill()
		}
		if p.tap.Killed() {
			return traffic.ErrKilled
		}
		return nil
	}, nil
}
