package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/operator-workshop/operatortest/traffic"
)

// The timing of elections in trials: a fifth of the usual one.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

var errCutOff = errors.New("cut off from the API server by the test")

var failover = behaviour{
	name:    "failover",
	promise: "hands over to its second replica when the first is lost, and never writes from two at once",
	advice: "leader election: workers and events start when the lease is won, and stop as soon as it is lost; " +
		"a replica that loses it ends its process; the lease is given back only after the last worker is done",
	check: func(ctx context.Context, lab *lab) error {
		cases := []func(*instance) error{
			(*instance).kill, // the leader's process vanishes
			(*instance).stop, // the leader is told to end
			cutOffFromLease,  // the leader lives, and can't renew its lease
		}
		return each(ctx, len(cases), func(ctx context.Context, i int) error {
			return lab.try(ctx, func(ctx context.Context, trial *trial) error { return trial.failOver(ctx, cases[i]) })
		})
	},
}

// cutOffFromLease lets nothing of the election pass. The leader ends on its own then, or works no more.
func cutOffFromLease(leader *instance) error {
	leader.stopped = true // it may end
	leader.tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.IsLease() {
			return traffic.Action{Drop: errCutOff}
		}
		return traffic.Action{}
	})
	return nil
}

func (t *trial) failOver(ctx context.Context, lose func(*instance) error) error {
	leader := t.start(RunOptions{LeaderElection: t.election("leader")})
	resource := t.resource(nil)
	if _, err := t.settle(ctx, leader, resource); err != nil {
		return err
	}
	second := t.start(RunOptions{LeaderElection: t.election("second")})
	spec, err := t.change(ctx)
	if err != nil {
		return err
	}
	wanted, err := t.fresh(ctx, spec)
	if err != nil {
		return err
	}
	if child := t.firstChild(); child != nil {
		if err := t.disturb(ctx, *child, ""); err != nil {
			return err
		}
	}
	if err := t.converge(ctx, resource); err != nil {
		return err
	}
	if writes := second.writes(); len(writes) > 0 {
		return fmt.Errorf("expected the second replica to write nothing while the first leads\nfound:\n%s", lines(writes))
	}
	if err := lose(leader); err != nil {
		return err
	}
	if err := t.takeOver(ctx, second); err != nil {
		return err
	}
	if err := t.respec(ctx, resource, spec); err != nil {
		return err
	}
	if err := t.convergeTo(ctx, resource, wanted, "the second replica to go on with the work"); err != nil {
		return err
	}
	return oneWriter(leader, second)
}

// takeOver gives the replicas work to do all the time, until the second one does it. Without a child that
// could be deleted there is no such work, and the second one has taken over when it has the lease.
func (t *trial) takeOver(ctx context.Context, second *instance) error {
	child := t.firstChild()
	return t.eventually(ctx, "the second replica to take over", func(ctx context.Context) error {
		if child == nil {
			return second.leads()
		}
		if err := t.disturb(ctx, *child, ""); err != nil {
			return err // it is not back yet
		}
		if len(second.writes()) == 0 {
			return fmt.Errorf("the second replica has written nothing since the first was lost")
		}
		return nil
	})
}

// leads returns an error if the replica has not written to the lease, which only its holder does.
func (i *instance) leads() error {
	for _, request := range i.tap.Requests() {
		if request.IsLease() && request.IsWrite() && (request.Status == http.StatusOK || request.Status == http.StatusCreated) {
			return nil
		}
	}
	return errors.New("the second replica does not have the lease")
}

// oneWriter returns an error if the first replica wrote after the second had begun to.
func oneWriter(first, second *instance) error {
	writes := second.writes()
	if len(writes) == 0 {
		return errors.New("expected the second replica to do the work once it has taken over\nfound that it has written nothing")
	}
	began := second.tap.Began().Add(writes[0].At)
	for _, request := range first.writes() {
		if at := first.tap.Began().Add(request.At); at.After(began) && request.Status != 0 {
			return fmt.Errorf("expected the first replica to write nothing once the second does\nfound, %s after the second had begun: %s",
				at.Sub(began).Round(time.Millisecond), request)
		}
	}
	return nil
}
