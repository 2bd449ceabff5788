package behaviours

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/traffic"
)

// write is one of an operator's writes in a trial: to the API server, not counting Events and Leases, or outside
// Kubernetes.
type write struct {
	// what is the verb, the kind of resource and the object's name, such as "create configmaps settings", or the
	// description of a call outside Kubernetes.
	what string
	// nth numbers the writes with the same description, from 1.
	nth int
}

// String describes the write: "create configmaps settings", or "create configmaps settings #2" if it is the second one.
func (w write) String() string {
	if w.nth <= 1 {
		return w.what
	}
	return fmt.Sprintf("%s #%d", w.what, w.nth)
}

// crashPoint records an operator's writes, and recognises one of them, its target. If it is attached to the operator,
// it also kills the operator there: right before the target takes effect, or right after. Without a target, it only
// records.
type crashPoint struct {
	target write
	before bool
	// recorded holds the writes of an earlier, undisturbed trial. They show which names are generated.
	recorded []write

	tap       *traffic.Tap
	namespace string

	mu sync.Mutex
	// seen holds the operator's writes so far.
	seen   []write
	killed bool
}

// attach makes the crash point watch the next operator's writes to the API server. If Operator.External is an
// Interrupter, the crash point also watches the calls that change something there, until the function that attach
// assigns to operators.restore is called.
func (p *crashPoint) attach(operators *supervisor, tap *traffic.Tap) {
	p.tap, p.namespace = tap, operators.Namespace
	tap.SetRule(p.decide)
	if outside, can := operators.Operator.External.(operatortest.Interrupter); can {
		operators.restore = outside.Interrupt(operators.Namespace, p.begin)
	}
}

// String describes the point: "before create configmaps settings", or "after create configmaps settings".
func (p *crashPoint) String() string {
	if p.before {
		return "before " + p.target.String()
	}
	return "after " + p.target.String()
}

// struck reports whether an operator was killed at this point.
func (p *crashPoint) struck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// hits records a write. If that is the target, hits marks the point as struck, and returns true.
func (p *crashPoint) hits(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := write{what: what, nth: 1}
	for _, earlier := range p.seen {
		if earlier.what == what {
			made.nth++
		}
	}
	p.seen = append(p.seen, made)
	if p.killed || made != p.target {
		return false
	}
	p.killed = true
	return true
}

// wordsFor describes a request by its verb, its resource and its object's name, without the parts that differ from
// trial to trial.
func (p *crashPoint) wordsFor(request traffic.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.normal(request.Name)
	resource, _, _ := strings.Cut(strings.TrimPrefix(request.Kind(), request.Verb+" "), "/")
	for _, made := range slices.Concat(p.recorded, p.seen) {
		created, _ := strings.CutPrefix(made.what, "create "+resource+" ")
		if prefix, generated := strings.CutSuffix(created, "*"); generated && strings.HasPrefix(name, prefix) {
			name = created
		}
	}
	return strings.TrimSpace(request.Kind() + " " + name)
}

// normal replaces the trial's namespace and all UIDs in a string with placeholders.
func (p *crashPoint) normal(text string) string {
	return state.WithoutUIDs(strings.ReplaceAll(text, p.namespace, "<namespace>"))
}

// decide is the rule for requests to the API server.
func (p *crashPoint) decide(request traffic.Request) traffic.Action {
	if !request.IsWrite() || request.IsEvent() || request.IsLease() || !p.hits(p.wordsFor(request)) {
		return traffic.Action{}
	}
	if p.before {
		return traffic.Action{Kill: true, Drop: traffic.ErrKilled}
	}
	return traffic.Action{Kill: true}
}

// begin runs before a call outside Kubernetes. It returns the function that runs after the call, or an error if the
// operator is dead already or must die before the call.
func (p *crashPoint) begin(call string) (end func() error, err error) {
	if p.tap.Killed() {
		return nil, traffic.ErrKilled
	}
	struck := p.hits(p.normal(call))
	if struck && p.before {
		p.tap.Kill()
		return nil, traffic.ErrKilled
	}
	return func() error {
		if struck {
			p.tap.Kill()
		}
		if p.tap.Killed() {
			return traffic.ErrKilled
		}
		return nil
	}, nil
}
