package behaviours

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

var errLeaseBlocked = errors.New("request of the leader election blocked by the test")

var failover = behaviour{
	name:    "failover",
	promise: "hands over to its second replica when the first is lost, and never lets both write at the same time",
	advice: "leader election: workers and events start when the lease is won, and stop as soon as it is lost; " +
		"a replica that loses it exits; the lease is released only after the last worker is done; " +
		"a write that is still in flight at that moment must either be refused, because of its resourceVersion, or have an effect that is noticed and repaired",
	check: func(ctx context.Context, runner *trial.Runner) error {
		cases := []struct {
			what string
			lose func(*trial.Instance) error
		}{
			{"the leader is killed", (*trial.Instance).Kill},
			{"the leader is told to stop", (*trial.Instance).Stop},
			{"the leader is running, but can't renew its lease", cutOffFromLease},
		}
		late := lateWrites()
		return trial.Each(ctx, len(cases)+len(late), func(ctx context.Context, i int) error {
			if i >= len(cases) {
				return tryLateWrite(ctx, runner, late[i-len(cases)])
			}
			return tryElection(ctx, runner, cases[i].what, func(ctx context.Context, t *trial.Trial, leader *trial.Instance) error {
				return tryFailover(ctx, t, leader, cases[i].lose)
			})
		})
	},
}

// cutOffFromLease blocks all leader election requests. The leader must then stop working, and may exit.
func cutOffFromLease(leader *trial.Instance) error {
	leader.Stopped = true // it is allowed to exit
	leader.Tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.IsLease() {
			return traffic.Action{Drop: errLeaseBlocked}
		}
		return traffic.Action{}
	})
	return nil
}

// tryElection starts a leader and runs an experiment with it. On a machine that stalls, the leader may lose its Lease
// before the experiment kills it, stops it or cuts it off. The experiment is then repeated with a leader that has more
// time to renew the Lease.
func tryElection(ctx context.Context, runner *trial.Runner, name string, experiment func(context.Context, *trial.Trial, *trial.Instance) error) error {
	lost := false
	err := runner.Try(ctx, name, func(ctx context.Context, t *trial.Trial) error {
		leader := t.Start(operatortest.RunOptions{LeaderElection: t.Election("leader")})
		err := experiment(ctx, t, leader)
		lost = err != nil && leader.Exited() && leads(leader) == nil
		t.Void = lost
		return err
	})
	if !lost {
		return err
	}
	return runner.Try(ctx, name, func(ctx context.Context, t *trial.Trial) error {
		return experiment(ctx, t, t.Start(operatortest.RunOptions{LeaderElection: t.LenientElection("leader")}))
	})
}

func tryFailover(ctx context.Context, t *trial.Trial, leader *trial.Instance, lose func(*trial.Instance) error) error {
	resource := t.Resource(nil)
	if _, err := t.Establish(ctx, leader, resource); err != nil {
		return err
	}
	second := t.Start(operatortest.RunOptions{LeaderElection: t.LenientElection("second")})
	spec, err := t.OtherSpec(ctx)
	if err != nil {
		return err
	}
	wanted, err := t.Fresh(ctx, spec)
	if err != nil {
		return err
	}
	if child := t.FirstChild(); child != nil {
		if err := disturb(ctx, t, *child, ""); err != nil {
			return err
		}
	}
	if err := t.Converge(ctx, resource); err != nil {
		return err
	}
	if writes := second.Writes(); len(writes) > 0 {
		return fmt.Errorf("expected the second replica to write nothing while the first leads\nfound:\n%s", lines(writes))
	}
	if err := lose(leader); err != nil {
		return err
	}
	if err := takeOver(ctx, t, second); err != nil {
		return err
	}
	if err := t.SetSpec(ctx, resource, spec); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, resource, wanted, "the second replica to continue the work"); err != nil {
		return err
	}
	return oneWriter(leader, second)
}

// takeOver deletes a child, and deletes it again each time it has been recreated, until the second replica has written
// something. If the sample has no declared child, takeOver only waits until the second replica has the Lease.
func takeOver(ctx context.Context, t *trial.Trial, second *trial.Instance) error {
	child := t.FirstChild()
	return t.Within(ctx, t.Operator.Timeout, "the second replica to take over", func(ctx context.Context) error {
		if child == nil {
			return leads(second)
		}
		if err := disturb(ctx, t, *child, ""); err != nil {
			return err // it has not been recreated yet
		}
		if len(second.Writes()) == 0 {
			return fmt.Errorf("the second replica has written nothing since the first was lost")
		}
		return nil
	})
}

// leads returns an error if none of the replica's writes to the Lease has succeeded: the first one that succeeds makes
// the replica the Lease's holder.
func leads(i *trial.Instance) error {
	for _, request := range i.Tap.Requests() {
		if request.IsLease() && request.IsWrite() && (request.Status == http.StatusOK || request.Status == http.StatusCreated) {
			return nil
		}
	}
	return errors.New("the second replica does not have the lease")
}

// oneWriter returns an error if the second replica wrote nothing, or if the first one wrote after the second had begun
// to write. A write of the first replica counts only if it got a reply.
func oneWriter(first, second *trial.Instance) error {
	writes := second.Writes()
	if len(writes) == 0 {
		return errors.New("expected the second replica to do the work once it has taken over\nfound that it has written nothing")
	}
	began := second.Tap.Began().Add(writes[0].At)
	for _, request := range first.Writes() {
		if at := first.Tap.Began().Add(request.At); at.After(began) && request.Status != 0 {
			return fmt.Errorf("expected the first replica to write nothing once the second does\nfound, %s after the second began to write: %s",
				at.Sub(began).Round(time.Millisecond), request)
		}
	}
	return nil
}
