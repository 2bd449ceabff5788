package behaviours

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// lateWrite is a write that is still in flight when the leader is killed, and that arrives after the leader's
// successor has worked on the same resource. The Lease can't prevent that. So either the API server must refuse the
// write, because of the resourceVersion in it, or the successor must repair what the write did.
type lateWrite struct {
	// what completes "a write …".
	what string
	// isOne reports whether an update or a patch is such a write. ofResources means that it is for an object of the
	// sample's kind, ofChildren that it is for an object of a child's kind.
	isOne func(request traffic.Request, ofResources, ofChildren bool) bool
}

func lateWrites() []lateWrite {
	return []lateWrite{
		{"to a child", func(request traffic.Request, _, ofChildren bool) bool { return ofChildren && request.Subresource == "" }},
		{"to the resource or its status", func(_ traffic.Request, ofResources, _ bool) bool { return ofResources }},
	}
}

func tryLateWrite(ctx context.Context, runner *trial.Runner, late lateWrite) error {
	change, err := changeInPlace(ctx, runner)
	if err != nil {
		return err
	}
	return tryElection(ctx, runner, "a write of the former leader arrives late, "+late.what, func(ctx context.Context, t *trial.Trial, leader *trial.Instance) error {
		if change == nil {
			t.NotTried = "no change of the spec is known that keeps the children's names: declare Operator.Values for a field that can be changed that way"
			return nil
		}
		changed, err := t.Fresh(ctx, change)
		if err != nil {
			return err
		}
		return late.play(ctx, t, leader, change, changed)
	})
}

// play changes the spec, delays the leader's next write that isOne accepts, and kills the leader. The successor carries
// out the change, and then the spec is changed back. When the delayed write arrives, it asks for a state that is no
// longer wanted.
func (w lateWrite) play(ctx context.Context, t *trial.Trial, leader *trial.Instance, change map[string]any, changed state.Snapshot) error {
	resource := t.Resource(nil)
	made, err := t.Establish(ctx, leader, resource)
	if err != nil {
		return err
	}
	second := t.Start(operatortest.RunOptions{LeaderElection: t.LenientElection("second")})
	delayed := &delayedWrite{arrive: make(chan struct{}), begun: make(chan struct{})}
	arrive := sync.OnceFunc(func() { close(delayed.arrive) })
	defer arrive()
	if delayed.matches, err = w.matcher(t); err != nil {
		return err
	}
	leader.Tap.SetRule(delayed.rule)
	if err := t.SetSpec(ctx, resource, change); err != nil {
		return err
	}
	begun, err := w.waitBegun(ctx, t, leader, delayed)
	if err != nil {
		return err
	}
	if !begun {
		t.NotTried = "the operator made no such write"
		return nil
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	if err := t.Within(ctx, t.Operator.Timeout, "the second replica to take over", func(context.Context) error { return leads(second) }); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, resource, changed, "the second replica to continue the work"); err != nil {
		return err
	}
	if err := t.SetSpec(ctx, resource, t.SampleSpec()); err != nil {
		if trial.Refused(err) {
			t.Remark = "the API server refuses to change the spec back"
			return nil
		}
		return err
	}
	if err := t.ConvergeTo(ctx, resource, made, "the second replica to follow the spec"); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, second); err != nil {
		return err
	}
	arrive()
	var reply traffic.Request
	err = t.Within(ctx, t.Operator.Timeout, "the late write to arrive", func(context.Context) (err error) {
		reply, err = delayed.reply(leader)
		return err
	})
	if err != nil {
		return err
	}
	t.Remark = fmt.Sprintf("the API server answered the late write with %d", reply.Status)
	if err := t.ConvergeTo(ctx, resource, made, "the same final state after a late write of the former leader"); err != nil {
		return fmt.Errorf("after the second replica had met the spec, a write of the first arrived: %s\n%w", reply, err)
	}
	return nil
}

func (w lateWrite) matcher(t *trial.Trial) (func(traffic.Request) bool, error) {
	ofResources, err := t.RequestsFor(t.Sample.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	ofChildren, err := t.RequestsFor(t.ChildKinds()...)
	return func(request traffic.Request) bool {
		return (request.Verb == "update" || request.Verb == "patch") && !request.DryRun && w.isOne(request, ofResources(request), ofChildren(request))
	}, err
}

// waitBegun waits until the leader makes the write to delay, and reports whether it does: it may also meet the changed
// spec without such a write.
func (w lateWrite) waitBegun(ctx context.Context, t *trial.Trial, leader *trial.Instance, delayed *delayedWrite) (begun bool, err error) {
	var stillness trial.Stillness
	resource := t.Resource(nil)
	err = t.Eventually(ctx, "the leader to write "+w.what+", or to meet the changed spec without that", func(ctx context.Context) error {
		select {
		case <-delayed.begun:
			begun = true
			return nil
		default:
		}
		isStill := stillness.Still(leader.Writes())
		if err := t.Get(ctx, resource); err != nil {
			return err
		}
		if err := t.Met(resource); err != nil {
			return err
		}
		if !isStill {
			return errors.New("it is still at work")
		}
		return nil
	})
	return begun, err
}

// delayedWrite delays the first write that matches.
type delayedWrite struct {
	matches       func(traffic.Request) bool
	arrive, begun chan struct{}
	once          sync.Once
	// at identifies the write.
	at time.Duration
}

func (d *delayedWrite) rule(request traffic.Request) traffic.Action {
	action := traffic.Action{}
	if d.matches(request) {
		d.once.Do(func() {
			d.at = request.At
			close(d.begun)
			action.Delay = d.arrive
		})
	}
	return action
}

// reply returns the write with the API server's reply, or an error if there is no reply yet.
func (d *delayedWrite) reply(leader *trial.Instance) (traffic.Request, error) {
	for _, request := range leader.Tap.Requests() {
		if request.At == d.at && request.Done {
			return request, nil
		}
	}
	return traffic.Request{}, errors.New("it has no reply yet")
}
