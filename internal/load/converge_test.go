package load

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

// gauge returns a resource of generation 2. Its status is given in YAML, under the key status. With {}, it has none.
func gauge(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Gauge"}}
	if err := yaml.Unmarshal([]byte(status), &made.Object); err != nil {
		t.Fatal(err)
	}
	made.SetName("gauge-1")
	made.SetGeneration(2)
	// Read it as the API server's answers are read, with whole numbers as int64.
	content, err := made.MarshalJSON()
	if err == nil {
		err = made.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestUnmet(t *testing.T) {
	for name, test := range map[string]struct{ status, wanted string }{
		"ready":                      {status: "status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}"},
		"available":                  {status: "status: {conditions: [{type: Available, status: 'True', observedGeneration: 2}]}"},
		"ready without a generation": {status: "status: {conditions: [{type: Ready, status: 'True'}]}"},
		"no status yet":              {status: "{}", wanted: "no condition Ready or Available"},
		"another condition":          {status: "status: {conditions: [{type: Synced, status: 'True'}]}", wanted: "no condition Ready or Available"},
		"not ready":                  {status: "status: {conditions: [{type: Ready, status: 'False', message: wait}]}", wanted: "InProgress"},
		"not available":              {status: "status: {conditions: [{type: Available, status: 'False'}]}", wanted: "no condition Ready or Available"},
		"ready for an older spec":    {status: "status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}", wanted: "for its current generation"},
		"a status for an older spec": {status: "status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", wanted: "InProgress"},
		"ready, but reconciling":     {status: "status: {conditions: [{type: Ready, status: 'True'}, {type: Reconciling, status: 'True'}]}", wanted: "InProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			missing := unmet(gauge(t, test.status))
			if test.wanted == "" {
				NewWithT(t).Expect(missing).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(missing).To(ContainSubstring(test.wanted))
		})
	}
}

func TestConvergenceRecordsWhenAnObjectFirstConverged(t *testing.T) {
	g := NewWithT(t)
	ready := gauge(t, "status: {conditions: [{type: Ready, status: 'True'}]}")
	seen := newConvergence(load{sets: [][]*unstructured.Unstructured{{ready}}, unmet: unmet})
	g.Expect(seen.stalled()).To(MatchError(ContainSubstring("Gauge gauge-1 has not: no event about it has arrived")))
	other := ready.DeepCopy()
	other.SetName("someone-else's")
	g.Expect(seen.take(watch.Event{Type: watch.Added, Object: other})).To(BeFalse(), "an object that is not part of the load must not count")
	g.Expect(seen.take(watch.Event{Type: watch.Bookmark, Object: ready})).To(BeFalse(), "a bookmark must not count, because it is not an object")
	g.Expect(seen.take(watch.Event{Type: watch.Added, Object: gauge(t, "{}")})).To(BeFalse())
	g.Expect(seen.stalled()).To(MatchError(ContainSubstring("gauge-1 has not: no condition Ready or Available")))
	g.Expect(seen.take(watch.Event{Type: watch.Modified, Object: ready})).To(BeTrue())
	first := seen.converged[keyOf(ready)]
	g.Expect(seen.take(watch.Event{Type: watch.Modified, Object: ready})).To(BeFalse(), "an object that had converged before must not count again")
	g.Expect(seen.converged).To(Equal(map[objectKey]time.Time{keyOf(ready): first}))
	g.Expect(seen.missing).To(BeEmpty())
}

func TestASetConvergesWithItsLastObject(t *testing.T) {
	g := NewWithT(t)
	early, late := gauge(t, "{}"), gauge(t, "{}")
	late.SetName("gauge-2")
	seen := newConvergence(load{sets: [][]*unstructured.Unstructured{{early, late}}, unmet: notCurrent})
	seen.begun[0] = at(1)
	seen.converged = map[objectKey]time.Time{keyOf(early): at(4), keyOf(late): at(3)}
	g.Expect(seen.latencies()).To(Equal([]time.Duration{3 * time.Second}))
}

func TestConvergenceEndsWithItsWatch(t *testing.T) {
	c := newConvergence(load{sets: [][]*unstructured.Unstructured{{gauge(t, "{}")}}, unmet: unmet})
	seen := make(chan watch.Event, 1)
	seen <- watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("too old").ErrStatus}
	err := c.follow(t.Context(), nil, seen, nil)
	NewWithT(t).Expect(err).To(MatchError("watch the objects: too old"))
}
