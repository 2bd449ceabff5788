package trial

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/operator-workshop/operatortest/traffic"
)

// logLines is the number of each operator's last requests that a failure shows.
const logLines = 30

// failure is the error of a trial, with the requests and the last log lines of its operators.
type failure struct {
	// id is the trial's ID, as in its Record.
	id    string
	cause error
	logs  [][]traffic.Request
	// said contains the last lines that each operator logged.
	said []string
}

// Brief returns an error's text. For the error of a trial, it leaves out the requests and log lines that failure.Error
// adds.
func Brief(err error) string {
	if failed, ok := errors.AsType[*failure](err); ok {
		return failed.cause.Error()
	}
	return err.Error()
}

// Forbidden returns the kinds of requests, such as "list configmaps", that the API server answered with 403 in a failed
// trial.
func Forbidden(err error) []string {
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		return nil
	}
	var refused []string
	for _, log := range failed.logs {
		for _, request := range log {
			if request.Status == http.StatusForbidden && !slices.Contains(refused, request.Kind()) {
				refused = append(refused, request.Kind())
			}
		}
	}
	return refused
}

// Unwrap returns the trial's error without the requests and log lines that Error adds.
func (f *failure) Unwrap() error { return f.cause }

func (f *failure) Error() string {
	text := &strings.Builder{}
	fmt.Fprintln(text, f.cause)
	for i, log := range f.logs {
		var shown []traffic.Request
		for _, request := range log {
			if !request.IsLease() || request.Status >= 400 {
				shown = append(shown, request)
			}
		}
		skipped := max(0, len(shown)-logLines)
		fmt.Fprintf(text, "requests of operator %d (%d earlier ones left out):\n", i+1, skipped)
		for _, request := range shown[skipped:] {
			fmt.Fprintln(text, request)
		}
		if said := f.said[i]; said != "" && !strings.Contains(f.cause.Error(), said) {
			fmt.Fprintf(text, "the last lines of its log:\n%s\n", said)
		}
	}
	return strings.TrimSpace(text.String())
}

// failures is the error for several failed trials: the first one in full, the others by their first lines.
type failures struct {
	first  error
	others []error
}

// together returns one error for all failures, or nil if there are none.
func together(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return &failures{first: errs[0], others: errs[1:]}
}

// Unwrap returns the first failure.
func (f *failures) Unwrap() error { return f.first }

func (f *failures) Error() string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s\n%d more failed:\n", f.first, len(f.others))
	for _, other := range f.others {
		fmt.Fprintln(text, "  "+named(other))
	}
	return strings.TrimSpace(text.String())
}

// named returns the first line of a failure, after the trial's ID if the failure is a trial's.
func named(err error) string {
	name := ""
	if failed, isTrial := errors.AsType[*failure](err); isTrial {
		name = failed.id + ": "
	}
	first, _, _ := strings.Cut(Brief(err), "\n")
	return name + first
}
