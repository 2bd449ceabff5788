package behaviours

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	// maxConflicts is how many of an operator's writes may be refused because of its own earlier ones. A reconcile
	// that starts before the cache shows the previous reconcile's last write gets one such conflict, and is right to
	// retry.
	maxConflicts = 1
	// conflictTries is how many trials in a row must exceed maxConflicts before the behaviour fails. On a busy machine,
	// the cache may lag behind several retries in one trial; an operator that causes conflicts does so in each.
	conflictTries = 3
)

var frugal = behaviour{
	name:    "frugal",
	promise: "writes no more than it must to converge",
	advice: "the number of writes in one reconcile: compute the whole status first and write it once at the end; " +
		"don't write a child again right after creating it; base the next write on the object that the last one returned, and read it again after a conflict",
	check: func(ctx context.Context, runner *trial.Runner) error {
		for try := 1; ; try++ {
			var conflicts *ownConflicts
			err := runner.Try(ctx, "writes for a new resource", func(ctx context.Context, t *trial.Trial) error {
				err := tryFrugal(ctx, t)
				if try == conflictTries || !errors.As(err, &conflicts) {
					return err
				}
				t.Remark = fmt.Sprintf("tried again because of %d conflicts", len(conflicts.requests))
				return nil
			})
			if err != nil || conflicts == nil {
				return err
			}
		}
	},
}

func tryFrugal(ctx context.Context, t *trial.Trial) error {
	operator := t.Start(operatortest.RunOptions{})
	if _, err := t.Establish(ctx, operator, t.Resource(nil)); err != nil {
		return err
	}
	var writes, invalid, conflicts []traffic.Request
	for _, request := range operator.Writes() {
		switch {
		case request.IsEvent(), request.Unchanged:
		case request.Status == http.StatusUnprocessableEntity:
			invalid = append(invalid, request)
		case request.Status == http.StatusConflict:
			conflicts = append(conflicts, request)
		case request.Status < http.StatusBadRequest:
			writes = append(writes, request)
		}
	}
	if len(invalid) > 0 {
		return fmt.Errorf("expected no write that the API server refuses as invalid\nfound %d:\n%s", len(invalid), lines(invalid))
	}
	if len(writes) > t.Operator.MaxWrites {
		return fmt.Errorf("expected at most %d write requests that take effect for a new resource, not counting events\nfound %d:\n%s",
			t.Operator.MaxWrites, len(writes), lines(writes))
	}
	if len(conflicts) > maxConflicts {
		return &ownConflicts{requests: conflicts}
	}
	return nil
}

// ownConflicts is the error about an operator's writes that were refused with 409 (Conflict) although no user wrote.
type ownConflicts struct{ requests []traffic.Request }

func (c *ownConflicts) Error() string {
	return fmt.Sprintf("expected at most %d write refused because of a conflict or because the object exists, while no user writes\nfound %d, and too many in each of %d trials:\n%s",
		maxConflicts, len(c.requests), conflictTries, lines(c.requests))
}

func lines(requests []traffic.Request) string {
	text := &strings.Builder{}
	for _, request := range requests {
		fmt.Fprintln(text, request)
	}
	return strings.TrimRight(text.String(), "\n")
}
