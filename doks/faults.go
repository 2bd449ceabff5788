package doks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// FaultKind is the way in which a request goes wrong.
type FaultKind string

// The kinds of faults. A fault that can come before or after the effect comes before it unless Fault.After is set.
const (
	// FaultTooMany responds with 429, with a Retry-After header if Fault.RetryAfter is set. There is no effect.
	FaultTooMany FaultKind = "429"
	// FaultServerError responds with 500, before or after the effect.
	FaultServerError FaultKind = "500"
	// FaultUnavailable responds with 503, before or after the effect.
	FaultUnavailable FaultKind = "503"
	// FaultBadGateway responds with 502 and an HTML page, as a proxy does, before or after the effect.
	FaultBadGateway FaultKind = "502"
	// FaultDelay delays the request by Fault.Delay, before or after the effect. Then the request continues.
	FaultDelay FaultKind = "delay"
	// FaultDrop breaks the connection without a reply, before or after the effect.
	FaultDrop FaultKind = "drop"
	// FaultCut breaks the connection in the middle of the reply's body, after the effect. A reply without a body is
	// lost.
	FaultCut FaultKind = "cut"
	// FaultStuckDelete accepts a request to delete a cluster, but the deletion never ends.
	FaultStuckDelete FaultKind = "stuck-delete"
	// FaultLaggingList omits from a list of clusters those created within the last Fault.Delay.
	FaultLaggingList FaultKind = "lagging-list"
	// FaultLaggingGet responds with 404 to a "get cluster" request if the cluster was created within the last
	// Fault.Delay.
	FaultLaggingGet FaultKind = "lagging-get"
	// FaultEndState makes a create request produce a cluster whose provisioning ends in Fault.State.
	FaultEndState FaultKind = "end-state"
)

// Always is the Fault.Count of a fault that hits every matching request.
const Always = -1

// Fault makes requests to the API go wrong. Of the matching requests that no older fault has hit, it lets the first
// Skip pass, and hits the next Count. A request doesn't count if the emulator refuses it because of a limit, the token,
// the method, the path, or a body that is unreadable or too large.
type Fault struct {
	// Method is the HTTP method of the requests that the fault hits. "" matches every method.
	Method string `json:"method,omitempty"`
	// Path is a pattern for the URL's path, as package path matches it: * matches anything but a slash, as in
	// /v2/kubernetes/clusters/*. "" matches every path.
	Path string `json:"path,omitempty"`
	// Kind is what goes wrong.
	Kind FaultKind `json:"kind"`
	// Count is how many requests the fault hits. If it is zero, the fault hits one request; if it is Always, every one.
	Count int `json:"count,omitempty"`
	// Skip is how many matching requests pass before the first one that the fault hits.
	Skip int `json:"skip,omitempty"`
	// After means that the fault comes after the effect.
	After bool `json:"after,omitempty"`
	// RetryAfter is for FaultTooMany only. It is rounded up to whole seconds.
	RetryAfter Duration `json:"retry_after,omitzero"`
	// Delay is for FaultDelay, FaultLaggingList and FaultLaggingGet only.
	Delay Duration `json:"delay,omitzero"`
	// State is for FaultEndState only: running, degraded or error.
	State State `json:"state,omitempty"`
}

// Duration is a time.Duration that JSON represents as a string such as 1m30s.
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads a duration from a string.
func (d *Duration) UnmarshalJSON(content []byte) error {
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		return fmt.Errorf("write a duration as a string such as \"1m30s\": %w", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}

var (
	delayable = map[FaultKind]bool{FaultServerError: true, FaultUnavailable: true, FaultBadGateway: true, FaultDelay: true, FaultDrop: true}
	timed     = map[FaultKind]bool{FaultDelay: true, FaultLaggingList: true, FaultLaggingGet: true}
	plain     = map[FaultKind]bool{FaultTooMany: true, FaultCut: true, FaultStuckDelete: true, FaultEndState: true}
	endStates = map[State]bool{StateRunning: true, StateDegraded: true, StateError: true}
)

// check rejects invalid faults.
func (f Fault) check() error {
	if _, err := path.Match(f.Path, ""); err != nil {
		return fmt.Errorf("the path pattern %q: %w", f.Path, err)
	}
	if f.Method != strings.ToUpper(f.Method) {
		return fmt.Errorf("the method is %q: write it in capitals", f.Method)
	}
	if f.Count < Always || f.Skip < 0 {
		return fmt.Errorf("count is %d and skip is %d: neither may be negative, except that count=-1 means every request", f.Count, f.Skip)
	}
	return f.checkKind()
}

// checkKind rejects an unknown kind, and a fault that has another kind's fields or lacks those that its own kind needs.
func (f Fault) checkKind() error {
	if !delayable[f.Kind] && !timed[f.Kind] && !plain[f.Kind] {
		return fmt.Errorf("the kind is %q: choose 429, 500, 502, 503, delay, drop, cut, stuck-delete, lagging-list, lagging-get or end-state", f.Kind)
	}
	if f.After && !delayable[f.Kind] {
		return fmt.Errorf("a fault of the kind %s cannot come after the effect", f.Kind)
	}
	if timed[f.Kind] != (f.Delay > 0) {
		return fmt.Errorf("only the kinds delay, lagging-list and lagging-get take a delay, which must be more than 0; the kind is %s", f.Kind)
	}
	if f.RetryAfter < 0 || f.RetryAfter > 0 && f.Kind != FaultTooMany {
		return fmt.Errorf("only the kind 429 takes retry_after, which cannot be negative; the kind is %s", f.Kind)
	}
	wellEnded := f.State == ""
	if f.Kind == FaultEndState {
		wellEnded = endStates[f.State]
	}
	if !wellEnded {
		return fmt.Errorf("only the kind end-state takes a state, which must be running, degraded or error; the kind is %s", f.Kind)
	}
	return nil
}

func (f Fault) matches(request *http.Request) bool {
	if f.Method != "" && f.Method != request.Method {
		return false
	}
	matched, _ := path.Match(f.Path, request.URL.Path) // the pattern has been checked
	return matched || f.Path == ""
}

// note is what the journal says about a request that the fault hit.
func (f *Fault) note() string {
	if f == nil {
		return ""
	}
	if f.After {
		return "fault " + string(f.Kind) + " after the effect"
	}
	return "fault " + string(f.Kind)
}

// faults holds the faults that may still hit a request.
type faults struct {
	mu   sync.Mutex
	left []Fault
}

func (f *faults) add(fault Fault) error {
	if err := fault.check(); err != nil {
		return fmt.Errorf("add a fault: %w", err)
	}
	if fault.Count == 0 {
		fault.Count = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, fault)
	return nil
}

// hit returns the oldest fault that is due for a request, or nil. It counts the request: against Skip for each fault
// that lets it pass, and against Count for the fault that it returns.
func (f *faults) hit(request *http.Request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.left {
		fault := &f.left[i]
		if !fault.matches(request) {
			continue
		}
		if fault.Skip > 0 {
			fault.Skip--
			continue
		}
		found := *fault
		if fault.Count != Always {
			fault.Count--
		}
		if fault.Count == 0 {
			f.left = slices.Delete(f.left, i, i+1)
		}
		return &found
	}
	return nil
}

// AddFault adds a fault for the requests from now on.
func (e *Emulator) AddFault(fault Fault) error { return e.faults.add(fault) }

// Faults returns the faults that may still hit a request, with their remaining counts.
func (e *Emulator) Faults() []Fault {
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	return append([]Fault{}, e.faults.left...)
}

// ClearFaults removes all faults.
func (e *Emulator) ClearFaults() {
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.left = nil
}
