package traffic

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Version is a state of an object that a watch has shown to the operator.
type Version struct {
	ResourceVersion string
	// Deleted tells that the watch has shown the object's end.
	Deleted bool
}

// Watching counts the matching watches that are open.
func (t *Tap) Watching(match func(Request) bool) int { return len(t.openWatches(match)) }

// Kept counts the events about objects that matching watches keep back now. Once a change
// is among them, the operator's next read of its cache is out of date for certain.
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

// Shown returns the version of an object that each matching watch showed last. A watch that has
// never shown the object is left out: a selector may exclude it, or a list may have come first.
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

// note remembers the version of an object that is delivered.
func (w *watch) note(event json.RawMessage) {
	if kind, object := decode(event); object != nil {
		w.shown[object.UID] = Version{ResourceVersion: object.ResourceVersion, Deleted: kind == apiwatch.Deleted}
	}
}
