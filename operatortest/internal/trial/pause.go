package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// leastPause is the shortest pause that ends a wait, even after a failure: client-go's informers then wait up to 1.6
	// seconds. Each further failure doubles it.
	leastPause = 2 * time.Second
	// A pause ends a wait only if it lasts at least gapFactor times as long as the longest gap between two successive
	// requests, because not all failures show in the requests. After each failure, the rate limiters of client-go and
	// controller-runtime wait twice as long as before, and informers up to four times as long: they double the delay,
	// and then multiply it by a random factor of 1 to 2.
	gapFactor = 4
	// maxDoublings bounds the doubling. With that many doublings, a pause would have to last over half an hour, longer
	// than a wait usually does.
	maxDoublings = 10
	// looksPerSecond is the number of looks in one second if none of them is delayed.
	looksPerSecond = int(time.Second / testcluster.PollInterval)
)

// pause ends a wait for an operator that has done nothing for longer than Operator.MaxPause allows, while no one else
// had anything left to do. Like Stillness, it counts looks, not time. One look per second asks the API server, so a
// slow API server makes the pause longer.
type pause struct {
	trial *Trial
	seen  activity
	looks int
	// outside is what existed outside Kubernetes one second into the pause.
	outside string
}

// activity changes whenever something happens in a trial.
type activity struct {
	requests, events, instances, stopped, version int
	// busy means that an operator is starting, is waiting for a reply, or can't see what is happening.
	busy bool
}

// errPaused ends a wait for an operator that pauses for too long.
var errPaused = errors.New("the operator pauses")

// newPause returns nil if a wait must not end early.
func (t *Trial) newPause(ctx context.Context) *pause {
	if t.Operator.MaxPause == 0 || ctx.Value(patientKey{}) != nil {
		return nil
	}
	return &pause{trial: t}
}

// look notes whether something has happened since the last look.
func (p *pause) look() {
	if p == nil {
		return
	}
	now := p.trial.activity()
	if now.busy || now != p.seen {
		p.seen, p.looks = now, 0
		return
	}
	p.looks++
}

// mustAsk reports whether this look must ask the API server itself.
func (p *pause) mustAsk() bool { return p != nil && p.looks > 0 && p.looks%looksPerSecond == 0 }

// isOver reports whether the operator has done nothing for too long, although it alone had something left to do.
func (p *pause) isOver(ctx context.Context) bool {
	if !p.mustAsk() {
		return false
	}
	outside, err := p.trial.outside(ctx)
	if err != nil || p.looks == looksPerSecond || outside != p.outside {
		p.outside = outside
		p.looks = min(p.looks, looksPerSecond)
		return false
	}
	// If others have finished something since the look began, the operator can't have reacted to it yet.
	return p.looks >= looksPerSecond*seconds(p.limit()) && !p.trial.othersAct(ctx) && p.trial.activity() == p.seen
}

// limit returns how long the operator may do nothing. If events trigger its tries, failures may follow one another without
// delay, but each of them still doubles the delay before the next retry.
func (p *pause) limit() time.Duration {
	limit := max(p.trial.Operator.MaxPause, leastPause)
	for _, instance := range p.trial.instances {
		if !instance.Stopped {
			done := instance.Tap.Activity()
			limit = max(limit, leastPause<<min(max(done.Failures-1, 0), maxDoublings), gapFactor*done.LongestGap)
		}
	}
	return limit
}

// seconds rounds a duration up to whole seconds.
func seconds(duration time.Duration) int { return int((duration + time.Second - 1) / time.Second) }

// explain returns the error for a wait that the pause has ended.
func (p *pause) explain(what string, last error) error {
	return fmt.Errorf("expected %s\nfound, when the operator had made no request for %ds: %w\n"+
		"the kit didn't wait any longer, because Operator.MaxPause is %s: raise Operator.MaxPause if the operator polls less often",
		what, p.looks/looksPerSecond, last, p.trial.Operator.MaxPause)
}

// activity returns what has happened in the trial so far, in both namespaces if it has two.
func (t *Trial) activity() activity {
	now := activity{instances: len(t.instances)}
	for _, instance := range t.instances {
		done := instance.Tap.Activity()
		now.requests += done.Requests
		now.events += done.Events
		now.busy = now.busy || done.InFlight > 0
		if instance.Stopped {
			now.stopped++
			continue
		}
		now.busy = now.busy || done.Requests == 0 || done.Misled
	}
	for _, each := range t.both() {
		now.version += t.store.version(each.Namespace)
	}
	return now
}

// outside describes what exists outside Kubernetes.
func (t *Trial) outside(ctx context.Context) (string, error) {
	described := ""
	if t.Operator.External == nil {
		return described, nil
	}
	for _, each := range t.both() {
		found, err := t.Operator.External.Snapshot(ctx, each.Namespace)
		if err != nil {
			return "", err
		}
		described += found + "\n"
	}
	return described, nil
}

// othersAct reports whether one of Kubernetes' controllers still has something to do: bring a child, such as a
// Deployment whose pods are not ready, to its desired state, or delete an object. If a list fails,
// othersAct returns true. It asks the API server, because the Runner's store may not show a new child yet.
func (t *Trial) othersAct(ctx context.Context) bool {
	for _, each := range t.both() {
		resources, err := each.List(ctx, t.Sample.GroupVersionKind())
		if err != nil || slices.ContainsFunc(resources, waitsForCollector) {
			return true
		}
		for _, kind := range t.ChildKinds() {
			children, err := each.List(ctx, kind)
			if err != nil || slices.ContainsFunc(children, func(child *unstructured.Unstructured) bool { return t.isInProgress(child, resources) }) {
				return true
			}
		}
	}
	return false
}

// waitsForCollector reports whether the garbage collector must act before a resource can disappear.
func waitsForCollector(resource *unstructured.Unstructured) bool {
	return slices.Contains(resource.GetFinalizers(), metav1.FinalizerDeleteDependents) || slices.Contains(resource.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// isInProgress reports whether someone other than the operator may have to act on a child, even if only to delete it
// because its owner is gone.
func (t *Trial) isInProgress(child *unstructured.Unstructured, resources []*unstructured.Unstructured) bool {
	return child.GetDeletionTimestamp() != nil || t.isOrphan(child, resources) || !isSuspendedJob(child) && current(child) != nil
}

// isOrphan reports whether one of an object's owners is a resource of the sample's kind that no longer exists.
func (t *Trial) isOrphan(object *unstructured.Unstructured, resources []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return t.isResource(owner) &&
			!slices.ContainsFunc(resources, func(resource *unstructured.Unstructured) bool { return resource.GetUID() == owner.UID })
	})
}

// both returns the trial, and the one for the other namespace if there are two.
func (t *Trial) both() []*Trial {
	switch {
	case t.beside != nil:
		return []*Trial{t, t.beside}
	case t.first != nil:
		return []*Trial{t.first, t}
	}
	return []*Trial{t}
}

// patientKey marks a context in which no pause ends a wait.
type patientKey struct{}

// Patiently returns a context in which no pause ends a wait, for periods in which the operator may wait for something
// that the kit doesn't see.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}
