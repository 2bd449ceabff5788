package traffic

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Version is a version of an object that a watch has shown to the operator.
type Version struct {
	ResourceVersion string
	// Deleted means that the watch has shown the object's deletion.
	Deleted bool
}

// Event is a watch event that has reached the operator. It is about an object, so it is neither a bookmark nor an error.
type Event struct {
	Type apiwatch.EventType
	// Group and Resource are those of the watch.
	Group, Resource string
	// Namespace, Name and Version are the object's; Version is its resource version.
	Namespace, Name, Version string
	// At is when the operator could read the event, measured from the Tap's creation.
	At time.Duration
}

// Events returns all watch events that have reached the operator so far, in order, except bookmarks and errors. They
// include the events with which a watch begins in place of a list.
func (t *Tap) Events() []Event {
	t.eventsMu.Lock()
	defer t.eventsMu.Unlock()
	return slices.Clone(t.events)
}

// Watching returns the number of matching watches that are open.
func (t *Tap) Watching(match func(Request) bool) int { return len(t.openWatches(match)) }

// Kept returns how many events are being held back in matching watches, not counting bookmarks and errors. If one of
// these events reports a change, the operator's cache is stale.
func (t *Tap) Kept(match func(Request) bool) int {
	kept := 0
	for _, watch := range t.openWatches(match) {
		watch.mu.Lock()
		for _, event := range watch.pending {
			if _, object := decode(event); object != nil {
				kept++
			}
		}
		watch.mu.Unlock()
	}
	return kept
}

// Shown returns the version of an object that each matching open watch has shown last. Watches that have never shown
// the object are left out: a selector may exclude it, or a list may have come first.
func (t *Tap) Shown(match func(Request) bool, uid types.UID) []Version {
	var shown []Version
	for _, watch := range t.openWatches(match) {
		watch.mu.Lock()
		if version, found := watch.shown[uid]; found {
			shown = append(shown, version)
		}
		watch.mu.Unlock()
	}
	return shown
}

// note records the delivery of an event about an object.
func (w *watch) note(event json.RawMessage) {
	kind, object := decode(event)
	if object == nil {
		return
	}
	w.shown[object.UID] = Version{ResourceVersion: object.ResourceVersion, Deleted: kind == apiwatch.Deleted}
	w.tap.eventsMu.Lock()
	defer w.tap.eventsMu.Unlock()
	w.tap.events = append(w.tap.events, Event{
		Type: kind, Group: w.request.Group, Resource: w.request.Resource,
		Namespace: object.Namespace, Name: object.Name, Version: object.ResourceVersion, At: w.tap.Now(),
	})
}
