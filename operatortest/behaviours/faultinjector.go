package behaviours

import (
	"fmt"
	"slices"
	"sync"

	"example.com/operator-workshop/operatortest/traffic"
)

// faultInjector disturbs the operators of one trial with a fault.
type faultInjector struct {
	fault fault

	mu   sync.Mutex
	now  *phase
	taps []*traffic.Tap
	// injected is how many requests were disturbed. spared is how many writes passed only because of the limit
	// laterFailures, in the phases that are over.
	injected, spared int
}

// tap returns a new Tap, one for each start of an operator.
func (i *faultInjector) tap() *traffic.Tap {
	tap := traffic.New()
	tap.SetRule(i.decide)
	i.taps = append(i.taps, tap)
	return tap
}

// decide is the rule for the operator's requests. It spares leader election, which has a behaviour of its own, and
// requests that are not for a resource, because libraries wait up to 10 seconds after a failed discovery.
func (i *faultInjector) decide(request traffic.Request) traffic.Action {
	if request.IsLease() || request.Resource == "" {
		return traffic.Action{}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	action := i.fault.decide(request, i.now)
	if action.Answer != nil || action.Drop != nil || action.Lose != nil {
		i.injected++
	}
	return action
}

func (i *faultInjector) nextPhase() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.spared += i.now.spared
	i.now = newPhase()
}

// result reports whether the operator was disturbed. If laterFailures spared some writes, the remark says how many.
func (i *faultInjector) result() (disturbed bool, remark string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if spared := i.spared + i.now.spared; spared > 0 {
		remark = fmt.Sprintf("writes that could also have failed: %d; after the first ones, at most %d fail in each phase, because the operator waits longer after each failure", spared, laterFailures)
	}
	cut := func(tap *traffic.Tap) bool { return tap.WatchesCut() > 0 }
	return i.injected > 0 || slices.ContainsFunc(i.taps, cut), remark
}

// phase counts the requests in one phase of a lifecycle.
type phase struct {
	counts map[string]int
	// failed and later have a key for each kind of write (see [traffic.Request.Kind]) to each object. failed says whether
	// the last such write failed; the next one is then probably a retry.
	failed map[string]bool
	// later says whether such a write has failed that was not among the first failuresPerKind of its kind. spared is how
	// many writes passed only because of the limit laterFailures.
	later  map[string]bool
	spared int
}

func newPhase() *phase {
	return &phase{counts: map[string]int{}, failed: map[string]bool{}, later: map[string]bool{}}
}

// count returns how many requests with a key there have been, including this one.
func (p *phase) count(key string) int {
	p.counts[key]++
	return p.counts[key]
}

// fails reports whether a request must fail: the first read of each kind (see [traffic.Request.Kind]), the first
// failuresPerKind writes of each kind, and then one later write of each kind to each object, but at most laterFailures
// of these in all. A later write must not be the retry of a failed one. Of the writes to Events, only the first
// failuresPerKind of each kind fail: most are to new objects, so later ones would soon use up laterFailures.
func (p *phase) fails(request traffic.Request) bool {
	nth := p.count(request.Kind())
	if !request.IsWrite() {
		return nth == 1
	}
	object := request.Kind() + " " + request.Target()
	later := nth > failuresPerKind && !p.failed[object] && !p.later[object] && !request.IsEvent()
	if later && len(p.later) == laterFailures {
		p.spared++
		later = false
	}
	if later {
		p.later[object] = true
	}
	p.failed[object] = nth <= failuresPerKind || later
	return p.failed[object]
}
