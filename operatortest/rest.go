package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/operator-workshop/operatortest/traffic"
)

// quiet is how long an operator must have made no request to count as done.
const quiet = 400 * time.Millisecond

// calm finds out by looking again and again whether an operator is done. It counts looks and
// not time: on a busy machine the operator is slow, and so are they.
type calm struct{ requests, looks int }

// look tells whether no request is in flight, and none was made for as many looks as usually take quiet.
func (c *calm) look(requests []traffic.Request) bool {
	inFlight := slices.ContainsFunc(requests, func(request traffic.Request) bool { return !request.Done })
	if inFlight || len(requests) != c.requests {
		c.requests, c.looks = len(requests), 0
		return false
	}
	c.looks++
	return c.looks >= int(quiet/pollInterval)
}

// rest waits until the operator has written nothing for a while.
func (t *trial) rest(ctx context.Context, operator *instance) error {
	var calm calm
	return t.eventually(ctx, fmt.Sprintf("the operator to rest: no write request for %s", quiet), func(context.Context) error {
		writes := operator.writes()
		if len(writes) == 0 || calm.look(writes) {
			return nil
		}
		return fmt.Errorf("it goes on writing, %d requests so far; the last one: %s", len(writes), writes[len(writes)-1])
	})
}

// awake waits until an operator watches its resources and is done with what it
// found: for a while it has neither begun to read a collection nor written.
func (t *trial) awake(ctx context.Context, operator *instance) error {
	ours, err := t.requestsFor(t.sample.GroupVersionKind())
	if err != nil {
		return err
	}
	ignored := func(request traffic.Request) bool { return request.IsLease() || request.Verb == "get" }
	watches := func(request traffic.Request) bool {
		return ours(request) && request.Verb == "watch" && request.Status == http.StatusOK
	}
	var calm calm
	return t.eventually(ctx, fmt.Sprintf("the operator to watch every %s, and then to rest for %s", t.sample.GetKind(), quiet), func(context.Context) error {
		requests := slices.DeleteFunc(operator.tap.Requests(), ignored)
		isCalm := calm.look(requests)
		if !slices.ContainsFunc(requests, watches) {
			return errors.New("it has not begun to watch")
		}
		if !isCalm {
			return fmt.Errorf("its last request: %s", requests[len(requests)-1])
		}
		return nil
	})
}
