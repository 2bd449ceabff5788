package operatortest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"example.com/operator-workshop/operatortest/traffic"
)

// maxWrites bounds the writes of an operator in one story. One that has not
// finished by then does not come to rest.
const maxWrites = 60

var crash = behaviour{
	name:    "crash",
	promise: "goes on where it was when it dies, whichever write that cuts off: nothing is lost, nothing is there twice",
	advice: "what is kept between two writes: memory is gone, so read the world again in every reconcile; do the work first and write down that it is done " +
		"after it, and make the work such that doing it twice does no harm: names that follow from the resource, and its UID as a key for the world outside; " +
		"when a resource is deleted, clean up first and take the finalizer off last",
	check: func(ctx context.Context, lab *lab) error {
		story, err := lab.story(ctx)
		if err != nil {
			return err
		}
		var number atomic.Int64
		var over atomic.Bool
		return each(ctx, parallelTrials, func(ctx context.Context, _ int) error {
			for !over.Load() {
				write := int(number.Add(1))
				if write > maxWrites {
					return fmt.Errorf("expected the operator to be done with a resource's whole life within %d writes\nfound more", maxWrites)
				}
				reached, err := lab.crashAt(ctx, story, write)
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

// crashAt plays a story in which one operator dies right before a write, the
// next one right after its first write, which most likely is the same, and a third one
// finishes the work: one trial for each write. It tells whether it came to that write.
func (l *lab) crashAt(ctx context.Context, story *story, write int) (reached bool, err error) {
	before, after := &reaper{write: write, before: true}, &reaper{write: 1}
	err = l.try(ctx, func(ctx context.Context, trial *trial) error {
		line := &lineage{trial: trial, reapers: []*reaper{before, after}}
		line.start()
		line.watched = true // every other behaviour watches an operator that was never killed
		defer func() { line.restore() }()
		trial.attend = line.attend
		if err := trial.tell(ctx, story, line.rest); err != nil {
			return fmt.Errorf("%s%s%w", before, after, err)
		}
		return nil
	})
	return before.String() != "", err
}

// lineage are operators of which one follows the other when it dies.
type lineage struct {
	*trial
	// reapers are waiting for the operators to come.
	reapers []*reaper
	current *instance
	restore func()
	// watched tells that it was seen what the present operator does once it is started.
	watched bool
}

// start runs the next operator.
func (l *lineage) start() {
	tap := traffic.New()
	l.restore, l.watched = func() {}, false
	if len(l.reapers) > 0 {
		l.reapers[0].wait(l, tap)
		l.reapers = l.reapers[1:]
	}
	l.current = l.startOn(tap, RunOptions{})
}

// attend starts another operator in the place of one that was killed.
func (l *lineage) attend() error {
	err := l.ended()
	if !l.current.tap.Killed() {
		return err
	}
	if err := l.current.kill(); err != nil {
		return err
	}
	l.restore()
	l.start()
	return nil
}

// rest gives the last operator the time to find out what there is, and to do harm.
func (l *lineage) rest(ctx context.Context) error {
	if err := l.attend(); err != nil || l.watched {
		return err
	}
	l.watched = true
	return l.awake(ctx, l.current)
}

// reaper kills an operator at one of its writes, to the API server or to the
// world outside: right before it takes effect, or right after.
type reaper struct {
	write  int
	before bool
	tap    *traffic.Tap

	mu     sync.Mutex
	writes int
	victim string
}

// wait lets the reaper look at the writes of the next operator.
func (r *reaper) wait(line *lineage, tap *traffic.Tap) {
	r.tap = tap
	tap.SetRule(r.decide)
	if outside, can := line.operator.External.(Interrupter); can {
		line.restore = outside.Interrupt(line.namespace, r.begin)
	}
}

// String is a line that says when the reaper struck, and empty if it did not.
func (r *reaper) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.victim == "" {
		return ""
	}
	when := "after"
	if r.before {
		when = "before"
	}
	return fmt.Sprintf("an operator was killed right %s its write %d took effect: %s\n", when, r.write, r.victim)
}

// strikes counts a write, and tells whether it is the one.
func (r *reaper) strikes(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if r.writes != r.write {
		return false
	}
	r.victim = what
	return true
}

// decide is the rule for requests to the API server.
func (r *reaper) decide(request traffic.Request) traffic.Action {
	if !request.IsWrite() || request.IsEvent() || request.IsLease() || !r.strikes(request.Kind()) {
		return traffic.Action{}
	}
	if r.before {
		return traffic.Action{Kill: true, Drop: traffic.ErrKilled}
	}
	return traffic.Action{Kill: true}
}

// begin is called before a call to the world outside, and returns what is called after it.
func (r *reaper) begin(call string) (end func() error, err error) {
	if r.tap.Killed() {
		return nil, traffic.ErrKilled
	}
	struck := r.strikes(call)
	if struck && r.before {
		r.tap.Kill()
		return nil, traffic.ErrKilled
	}
	return func() error {
		if struck {
			r.tap.Kill()
		}
		if r.tap.Killed() {
			return traffic.ErrKilled
		}
		return nil
	}, nil
}
