package doks

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// largestBody bounds a request's body. It is more than any request to this API needs.
const largestBody = 1 << 20

// exchange is one request while it is being answered.
type exchange struct {
	request *http.Request
	caller  caller
	route   route
	// ids are the parts of the path that name something: cluster, pool and node.
	ids   map[string]string
	query url.Values
	body  []byte
	now   time.Time
	fault *Fault
	entry *Entry
}

// serveAPI refuses a request or carries it out. A fault may hit a request that isn't refused.
func (e *Emulator) serveAPI(writer http.ResponseWriter, request *http.Request) {
	x := e.open(request)
	defer e.close(x)
	left := e.limits.count(x.caller.name, x.now)
	left.set(writer.Header())
	if refused, ok := e.refuse(x, left); !ok {
		e.answer(writer, x, refused, false)
		return
	}
	x.fault = e.faults.hit(request)
	e.journal.change(x.entry, func(entry *Entry) { entry.Note = x.fault.note() })
	if !e.before(writer, x) {
		return
	}
	done := e.carryOut(x)
	e.after(writer, x, done)
}

// open identifies the caller and the call, and adds the request to the journal.
func (e *Emulator) open(request *http.Request) *exchange {
	x := &exchange{request: request, caller: e.identify(request), query: request.URL.Query(), now: e.options.Clock.Now()}
	x.route, x.ids = e.match(request)
	entry := Entry{Time: x.now, Token: x.caller.name, Method: request.Method, Path: e.conceal(request.URL.RequestURI()), Operation: x.route.name, ClusterID: x.ids["cluster"]}
	if x.route.run == nil {
		entry.Operation = "unknown"
	}
	x.entry = e.journal.open(entry)
	return x
}

// close marks the entry as done and logs it, even if the emulator drops the connection.
func (e *Emulator) close(x *exchange) {
	var line string
	e.journal.change(x.entry, func(entry *Entry) {
		entry.Done = true
		line = entry.String()
	})
	e.options.Log.Info(line)
}

// refuse rejects a request for the first reason that it finds. If there is none, it keeps the body in x.
func (e *Emulator) refuse(x *exchange, left budget) (reply, bool) {
	if left.exceeded {
		wait := ""
		if left.retryAfter > 0 {
			wait = seconds(left.retryAfter)
		}
		return tooMany(wait), false
	}
	if !x.caller.known {
		return unauthorized(), false
	}
	if x.route.run == nil {
		return notFound(), false
	}
	if x.route.write && x.caller.readOnly || x.route.pattern == accountPattern && x.caller.clustersOnly {
		return forbidden(), false
	}
	body, err := io.ReadAll(io.LimitReader(x.request.Body, largestBody+1))
	if err != nil {
		return badRequest("the body could not be read"), false
	}
	if len(body) > largestBody {
		return badRequest("the body is too large"), false
	}
	x.body = body
	return reply{}, true
}

// carryOut applies the request. If a test has set an Interrupter, it runs before the effect, and the function that it
// returns runs after the effect.
func (e *Emulator) carryOut(x *exchange) reply {
	end := e.begin(x)
	done := e.apply(x)
	if done.later != nil {
		done = done.later(x.request.Context())
	}
	e.journal.change(x.entry, func(entry *Entry) { entry.Status, entry.Effective = done.status, done.effective })
	e.nudge()
	e.finish(x, end)
	return done
}

// apply carries out the requested call while the clusters are locked.
func (e *Emulator) apply(x *exchange) reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.now = e.options.Clock.Now() // an interruption or a delay may have taken a while
	e.advance(x.now)
	found := e.account.find(x.ids["cluster"])
	done := e.keep(x.route.run(x))
	if done.cluster != nil {
		found = done.cluster
	}
	if found != nil {
		e.journal.change(x.entry, func(entry *Entry) { entry.ClusterID, entry.ClusterName = found.ID, found.Name })
	}
	return done
}

// begin runs the test's code before the effect. If it returns an error, the connection breaks.
func (e *Emulator) begin(x *exchange) (end func() error) {
	e.mu.Lock()
	interrupt := e.interrupt
	call := Call{
		Number: x.entry.Number, Method: x.request.Method, Path: x.request.URL.Path, Operation: x.route.name, Write: x.route.write,
		ClusterID: x.ids["cluster"], ClusterName: e.nameFor(x),
	}
	e.mu.Unlock()
	e.journal.change(x.entry, func(entry *Entry) { entry.ClusterName = call.ClusterName })
	if interrupt == nil {
		return nil
	}
	end, err := interrupt(call)
	if err != nil {
		e.abort(x, "dropped before the effect: "+err.Error())
	}
	return end
}

// finish runs the test's code after the effect. If it returns an error, the connection breaks.
func (e *Emulator) finish(x *exchange, end func() error) {
	if end == nil {
		return
	}
	if err := end(); err != nil {
		e.abort(x, "its reply was dropped: "+err.Error())
	}
}

// nameFor returns the name of the request's cluster, which a create request has in its body, or "" if it finds none.
func (e *Emulator) nameFor(x *exchange) string {
	if found := e.account.find(x.ids["cluster"]); found != nil {
		return found.Name
	}
	if x.route.name != createCluster {
		return ""
	}
	var named struct{ Name string }
	if err := json.Unmarshal(x.body, &named); err != nil {
		return "" // the operation reports what is wrong with the body
	}
	return named.Name
}

// abort breaks the connection, and notes the reason in the journal.
func (e *Emulator) abort(x *exchange, note string) {
	e.journal.change(x.entry, func(entry *Entry) { entry.Note = note })
	panic(http.ErrAbortHandler)
}

// answer sends a reply, and records its status in the journal.
func (e *Emulator) answer(writer http.ResponseWriter, x *exchange, done reply, cut bool) {
	e.journal.change(x.entry, func(entry *Entry) { entry.Status = done.status })
	done.send(writer, cut)
}

// decode parses the body, which must be JSON.
func (x *exchange) decode(into any) (reply, bool) {
	err := json.Unmarshal(x.body, into)
	if err == nil {
		return reply{}, true
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badRequest("the field " + mistyped.Field + " cannot be of type " + mistyped.Value), false
	}
	return badRequest("the body is not valid JSON"), false
}
