// Package traffic records one operator's requests, and interferes with them. A
// [Tap] wraps the operator's rest.Config and needs no change to the operator's
// code: it records every request, and a [Rule] makes it answer, delay or drop some
// requests, or lose their replies. The Tap can also hold back watch events, and
// make the operator's process look as if it had been killed between two requests.
//
//	tap := traffic.New()
//	config = tap.Config(config)
//	tap.SetRule(func(request traffic.Request) traffic.Action {
//		if request.Verb == "create" {
//			return traffic.Action{Lose: io.ErrUnexpectedEOF}
//		}
//		return traffic.Action{}
//	})
package traffic

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// ErrKilled is the error of requests that a killed operator makes, or that are in flight when it is killed, unless they
// fail for another reason.
var ErrKilled = errors.New("the operator's process is dead (killed by the test)")

// Rule decides, before a request is sent, what happens to it. Calls are never concurrent.
type Rule func(Request) Action

// Action is what a Rule does with a request. The zero value lets it pass.
type Action struct {
	// Hold delays the request until the channel is closed; then the fields below apply. The request never arrives if the
	// operator cancels it or is killed before that.
	Hold <-chan struct{}
	// Delay keeps the request in flight until the channel is closed. Then it arrives, even if the operator has cancelled it
	// or is dead. The fields below have no effect on such a request.
	Delay <-chan struct{}
	// Answer is sent instead of the API server's reply. The API server doesn't see the request.
	Answer *Answer
	// Drop is the error that the operator gets. The API server doesn't see the request.
	Drop error
	// CutWatches breaks the open watches, as [Tap.CutWatches] does, before the request is sent.
	CutWatches bool
	// Lose is the error that the operator gets although the request takes effect: its reply is lost.
	Lose error
	// Kill blocks all further requests and replies, even this request's reply. With Drop, the operator dies right before
	// the request; without Drop, right after it. Open watches continue until [Tap.Kill].
	Kill bool
}

// Tap sits between one operator and the API server. Create it with New.
type Tap struct {
	began time.Time

	mu  sync.Mutex
	log []*Request
	// failures and longestGap become fields of [Activity]. So does inFlight, after the watches that are still listing have
	// been added.
	inFlight, failures int
	longestGap         time.Duration

	rule Rule
	dead bool
	// diedAt is measured from began.
	diedAt time.Duration
	// confinement says which namespaces the operator sees. It is nil if the operator may see all of them.
	confinement *confinement
	// past is the earlier state that lists show. It is nil if they show the current one.
	past *past
	// read reads the object that a server-side apply will change. If it is nil, the Tap can't tell whether the apply
	// changes anything.
	read func(context.Context, Request) (*unstructured.Unstructured, error)
	// others contains the versions of objects that NoteOther has been told about.
	others []version
	// killed is closed by Kill.
	killed chan struct{}
	// watches are the open watches; holds keep back their events.
	watches map[*watch]struct{}
	holds   map[*hold]struct{}
	// cut is the number of open watches that CutWatches has broken.
	cut int

	eventsMu sync.Mutex
	events   []Event
}

// New returns a Tap that lets everything pass.
func New() *Tap {
	return &Tap{
		began: time.Now(), killed: make(chan struct{}), watches: map[*watch]struct{}{}, holds: map[*hold]struct{}{},
	}
}

// Config returns a copy of the configuration. Clients that use the copy send their requests through the Tap. They encode
// objects in JSON unless they choose another encoding themselves, as client-go's metadata client does. In any case, the
// Tap asks the API server for JSON, which it can read.
func (t *Tap) Config(config *rest.Config) *rest.Config {
	tapped := rest.CopyConfig(config)
	tapped.ContentType = runtime.ContentTypeJSON
	tapped.AcceptContentTypes = runtime.ContentTypeJSON
	tapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{tap: t, next: next} })
	return tapped
}

// SetRule replaces the rule. A nil rule lets everything pass.
func (t *Tap) SetRule(rule Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rule = rule
}

// Kill makes the operator's process look dead: it breaks the open watches, and no requests or replies pass any more.
// The operator's code may keep running, but no request that it makes from then on reaches the API server.
func (t *Tap) Kill() {
	t.mu.Lock()
	t.die()
	select {
	case <-t.killed:
	default:
		close(t.killed)
	}
	t.mu.Unlock()
	t.CutWatches()
}

// Killed reports whether the operator was killed, by a rule or by Kill.
func (t *Tap) Killed() bool {
	_, killed := t.KilledAt()
	return killed
}

// KilledAt returns when the operator was killed, measured from the Tap's creation, and whether it was killed at all.
func (t *Tap) KilledAt() (at time.Duration, killed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.diedAt, t.dead
}

// die notes the operator's death. The caller holds mu.
func (t *Tap) die() {
	if !t.dead {
		t.dead, t.diedAt = true, t.Now()
	}
}

// Requests returns all requests so far, in the order they were made.
func (t *Tap) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	requests := make([]Request, len(t.log))
	for i, request := range t.log {
		requests[i] = *request
	}
	return requests
}

// Activity summarises what an operator has done so far.
type Activity struct {
	// Requests is the number of requests that it has made, and InFlight is the number of those that have not ended. A
	// watch counts as ended when its reply begins or, if it begins with all objects, when the last of these has arrived.
	Requests, InFlight int
	// Events is the number of watch events that have reached the operator, not counting bookmarks and errors.
	Events int
	// Failures counts the operator's reasons to wait longer before its next try: watches that have broken or that the API
	// server has ended, and failed requests except reads of an object that doesn't exist. A call to CutWatches counts
	// once.
	Failures int
	// LongestGap is the longest time between two successive requests.
	LongestGap time.Duration
	// Misled means that [Tap.Hold] or [Tap.ShowPast] is in effect, so the Tap may hide changes from the operator.
	Misled bool
}

// Activity returns a summary of all requests so far. It costs less than Requests.
func (t *Tap) Activity() Activity {
	t.eventsMu.Lock()
	events := len(t.events)
	t.eventsMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	listing := 0
	for watch := range t.watches {
		if watch.lists.Load() {
			listing++
		}
	}
	return Activity{Requests: len(t.log), InFlight: t.inFlight + listing, Events: events, Failures: t.failures, LongestGap: t.longestGap, Misled: len(t.holds) > 0 || t.past != nil}
}

// Began returns the time when the Tap was created; times in the request log are measured from then.
func (t *Tap) Began() time.Time { return t.began }

// Now returns the current time, measured as in the request log.
func (t *Tap) Now() time.Duration { return time.Since(t.began) }

// begin records a request and decides what to do with it. If the operator must die right before the request, begin
// kills it.
func (t *Tap) begin(parsed Request) (*Request, Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parsed.At = t.Now()
	if earlier := len(t.log); earlier > 0 {
		t.longestGap = max(t.longestGap, parsed.At-t.log[earlier-1].At)
	}
	entry := &parsed
	t.log = append(t.log, entry)
	t.inFlight++
	if t.dead {
		return entry, Action{Drop: ErrKilled}
	}
	if t.rule == nil {
		return entry, Action{}
	}
	action := t.rule(parsed)
	if action.Kill && action.Drop != nil {
		t.die()
		action.Drop = ErrKilled
	}
	return entry, action
}

// end records the outcome of the request, kills the operator if the action demands it, and returns the result that the
// operator sees.
func (t *Tap) end(entry *Request, action Action, response *http.Response, err error) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry.Done = true
	t.inFlight--
	if response != nil {
		entry.Status = response.StatusCode
	}
	if action.Kill {
		t.die()
	}
	lost := action.Lose
	if t.dead {
		lost = ErrKilled
	}
	if !t.dead && (err != nil || lost != nil || entry.Status >= http.StatusBadRequest && (entry.Status != http.StatusNotFound || entry.IsWrite())) {
		t.failures++
	}
	switch {
	case err == nil && lost == nil:
		return response, nil
	case errors.Is(err, context.Canceled):
		entry.Canceled, entry.Note = true, "cancelled by the operator"
		return response, err
	case err != nil:
		entry.Note = err.Error()
		return response, err
	}
	entry.Note = "its reply was lost: " + lost.Error()
	_ = response.Body.Close()
	return nil, lost
}
