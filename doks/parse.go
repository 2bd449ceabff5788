package doks

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseFault parses a fault as written on a command line: a method, a path pattern, a kind and its options, separated
// by spaces. A star alone matches any method or path.
//
//	POST /v2/kubernetes/clusters drop after count=2
//	GET * 429 retry_after=2s count=-1
//	GET /v2/kubernetes/clusters lagging-list delay=10s
//	POST /v2/kubernetes/clusters end-state state=error skip=1
func ParseFault(text string) (Fault, error) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return Fault{}, fmt.Errorf("the fault %q: write METHOD PATH KIND, such as 'POST /v2/kubernetes/clusters drop after'", text)
	}
	fault := Fault{Method: words[0], Path: words[1], Kind: FaultKind(words[2])}
	if fault.Method == "*" {
		fault.Method = ""
	}
	if fault.Path == "*" {
		fault.Path = ""
	}
	for _, word := range words[3:] {
		if err := fault.set(word); err != nil {
			return Fault{}, fmt.Errorf("the fault %q: %w", text, err)
		}
	}
	if err := fault.check(); err != nil {
		return Fault{}, fmt.Errorf("the fault %q: %w", text, err)
	}
	return fault, nil
}

func (f *Fault) set(word string) error {
	name, value, _ := strings.Cut(word, "=")
	var err error
	switch name {
	case "after":
		f.After = true
	case "count":
		f.Count, err = strconv.Atoi(value)
	case "skip":
		f.Skip, err = strconv.Atoi(value)
	case "retry_after":
		f.RetryAfter, err = parseDuration(value)
	case "delay":
		f.Delay, err = parseDuration(value)
	case "state":
		f.State = State(value)
	default:
		return fmt.Errorf("%q is not one of after, count=, skip=, retry_after=, delay= and state=", word)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	return nil
}

func parseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	return Duration(parsed), err
}
