package behaviours

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

var frugal = behaviour{
	name:    "frugal",
	promise: "writes no more than it must to converge",
	advice: "the number of writes in one reconcile: compute the whole status first and write it once at the end; " +
		"don't write a child again that was just created",
	check: func(ctx context.Context, runner *trial.Runner) error {
		return runner.Try(ctx, "writes for a new resource", func(ctx context.Context, t *trial.Trial) error {
			operator := t.Start(operatortest.RunOptions{})
			if _, err := t.Establish(ctx, operator, runner.Resource(nil)); err != nil {
				return err
			}
			var writes []traffic.Request
			for _, request := range operator.Writes() {
				if !request.IsEvent() && request.Status < http.StatusBadRequest {
					writes = append(writes, request)
				}
			}
			if len(writes) > runner.Operator.MaxWrites {
				return fmt.Errorf("expected at most %d write requests with effect for a new resource, events aside\nfound %d:\n%s",
					runner.Operator.MaxWrites, len(writes), lines(writes))
			}
			return nil
		})
	},
}

func lines(requests []traffic.Request) string {
	text := &strings.Builder{}
	for _, request := range requests {
		fmt.Fprintln(text, request)
	}
	return strings.TrimRight(text.String(), "\n")
}
