package traffic

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// hold keeps back the events of matching watches.
type hold struct{ match func(Request) bool }

// Release says how held events are delivered.
type Release int

const (
	// Late delivers all held events, in order.
	Late Release = iota
	// Latest delivers one event for each object that has changed, with its latest state, as if the operator had been
	// disconnected while the events were held. The operator never sees objects that were created and deleted in that time.
	Latest
)

// Hold holds back the events of matching watches, including those already open, until the returned function is
// called, and for as long as another hold matches. If a watch begins with all objects in place of a list, those objects
// pass, as a list would.
func (t *Tap) Hold(match func(Request) bool) (release func(Release)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := &hold{match: match}
	t.holds[held] = struct{}{}
	return func(how Release) {
		// Events that arrive during the release are held, too: delivering one Late would deliver all earlier ones with it.
		for _, watch := range t.openWatches(match) {
			watch.release(how, held)
		}
		t.mu.Lock()
		delete(t.holds, held)
		t.mu.Unlock()
		for _, watch := range t.openWatches(match) {
			watch.release(Late, nil)
		}
	}
}

func (t *Tap) openWatches(match func(Request) bool) []*watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	var open []*watch
	for watch := range t.watches {
		if match(watch.request) {
			open = append(open, watch)
		}
	}
	return open
}

// CutWatches breaks every open watch, as a lost connection does.
func (t *Tap) CutWatches() {
	t.mu.Lock()
	open := t.watches
	t.watches = map[*watch]struct{}{}
	t.cut += len(open)
	t.failures++
	t.mu.Unlock()
	for watch := range open {
		watch.fail(io.ErrUnexpectedEOF)
	}
}

// WatchesCut returns how many open watches CutWatches has broken.
func (t *Tap) WatchesCut() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cut
}

// held reports whether a hold other than the given one holds back the events of a watch.
func (t *Tap) held(request Request, other *hold) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for held := range t.holds {
		if held != other && held.match(request) {
			return true
		}
	}
	return false
}

func (t *Tap) openWatch(request Request, namespaces []string, body io.ReadCloser) io.ReadCloser {
	opened := &watch{tap: t, request: request, namespaces: namespaces, body: body, shown: map[types.UID]Version{}}
	opened.lists.Store(request.Lists)
	opened.changed = sync.NewCond(&opened.mu)
	t.mu.Lock()
	t.watches[opened] = struct{}{}
	dead := t.dead
	t.mu.Unlock()
	if dead { // killed since the reply arrived
		opened.fail(ErrKilled)
		return opened
	}
	go opened.pump()
	return opened
}

// noteBroken counts a watch that has broken, or that the API server has ended, as a failure. It doesn't count one that the
// operator has closed or CutWatches has broken.
func (t *Tap) noteBroken(broken *watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.watches[broken]; open {
		t.failures++
	}
}

func (t *Tap) closeWatch(closed *watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watches, closed)
}

// watch is the body of a watch's reply, through which events pass one at a time.
type watch struct {
	tap     *Tap
	request Request
	// namespaces lists those that the operator sees. It is nil if the operator sees all of them.
	namespaces []string
	body       io.ReadCloser

	// lists means that the objects with which the watch begins are still arriving.
	lists atomic.Bool

	mu      sync.Mutex
	changed *sync.Cond
	// pending are events that may be held; ready is what the operator can read.
	pending []json.RawMessage
	ready   bytes.Buffer
	// shown maps an object's UID to the version in the last event about it that the operator could read.
	shown map[types.UID]Version
	err   error
}

// pump reads the events from the server as they arrive.
func (w *watch) pump() {
	events := json.NewDecoder(w.body)
	for {
		var event json.RawMessage
		if err := events.Decode(&event); err != nil {
			w.tap.noteBroken(w)
			w.fail(err)
			return
		}
		if w.hides(event) {
			continue
		}
		w.take(event)
		w.release(Late, nil)
	}
}

// hides reports whether an event is about an object in a namespace that the operator doesn't see.
func (w *watch) hides(event json.RawMessage) bool {
	if w.namespaces == nil {
		return false
	}
	_, object := decode(event)
	return object != nil && !slices.Contains(w.namespaces, object.Namespace)
}

func (w *watch) take(event json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lists.Load() {
		w.pending = append(w.pending, event)
		return
	}
	w.deliver(event)
	w.lists.Store(!endsList(event))
}

// endsList reports whether the event is the bookmark after the objects with which a watch begins.
func endsList(raw json.RawMessage) bool {
	var event struct{ Object metav1.PartialObjectMetadata }
	return json.Unmarshal(raw, &event) == nil && event.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

func (w *watch) deliver(event json.RawMessage) {
	w.note(event)
	w.ready.Write(event)
	w.ready.WriteByte('\n')
	w.changed.Broadcast()
}

// release delivers the held events, unless a hold other than the given one holds them, too.
func (w *watch) release(how Release, held *hold) {
	if w.tap.held(w.request, held) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if how == Latest {
		w.pending = latest(w.pending)
	}
	for _, event := range w.pending {
		w.deliver(event)
	}
	w.pending = nil
}

// fail ends the watch for the operator, which gets the first of all errors passed to fail.
func (w *watch) fail(err error) {
	_ = w.body.Close()
	w.lists.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.changed.Broadcast()
}

// Read implements io.Reader.
func (w *watch) Read(buffer []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.ready.Len() == 0 && w.err == nil {
		w.changed.Wait()
	}
	if w.ready.Len() > 0 {
		return w.ready.Read(buffer)
	}
	return 0, w.err
}

// Close implements io.Closer.
func (w *watch) Close() error {
	w.tap.closeWatch(w)
	w.fail(io.EOF)
	return nil
}

// latest keeps the last event of each object, with the type that a watcher would see after missing the earlier ones. It
// drops objects that were created and then deleted. Bookmarks and errors are kept.
func latest(events []json.RawMessage) []json.RawMessage {
	first := map[string]apiwatch.EventType{}
	last := map[string]int{}
	for i, raw := range events {
		kind, key := describe(raw)
		if _, known := first[key]; !known {
			first[key] = kind
		}
		last[key] = i
	}
	var kept []json.RawMessage
	for i, raw := range events {
		kind, key := describe(raw)
		isNew, gone := first[key] == apiwatch.Added, kind == apiwatch.Deleted
		switch {
		case key == "":
			kept = append(kept, raw)
		case last[key] != i || isNew && gone:
			continue
		case isNew:
			kept = append(kept, retype(raw, apiwatch.Added))
		case kind == apiwatch.Added: // deleted and recreated
			kept = append(kept, retype(raw, apiwatch.Modified))
		default:
			kept = append(kept, raw)
		}
	}
	return kept
}

type frame struct {
	Type   apiwatch.EventType `json:"type"`
	Object json.RawMessage    `json:"object"`
}

// describe returns an event's type and a key for its object. The key is empty for bookmarks and errors, which aren't
// about an object, and for events that can't be read.
func describe(raw json.RawMessage) (apiwatch.EventType, string) {
	kind, object := decode(raw)
	if object == nil {
		return kind, ""
	}
	return kind, object.Namespace + "/" + object.Name
}

// decode returns an event's type and the metadata that identifies its object. The metadata is nil for bookmarks, for
// errors, and for events that can't be read. If the client asked for Tables, as kubectl get --watch does, the object is
// in the only row of the event's Table.
func decode(raw json.RawMessage) (apiwatch.EventType, *metav1.PartialObjectMetadata) {
	var event struct {
		Type   apiwatch.EventType
		Object struct {
			metav1.PartialObjectMetadata
			Rows json.RawMessage
		}
	}
	if json.Unmarshal(raw, &event) != nil || event.Type == apiwatch.Bookmark || event.Type == apiwatch.Error {
		return event.Type, nil
	}
	if event.Object.GroupVersionKind().GroupKind() != tableKind {
		return event.Type, &event.Object.PartialObjectMetadata
	}
	var rows []struct{ Object metav1.PartialObjectMetadata }
	if json.Unmarshal(event.Object.Rows, &rows) != nil || len(rows) != 1 {
		return event.Type, nil
	}
	return event.Type, &rows[0].Object
}

// tableKind is the kind that the API server uses to send objects to clients that print them as a table.
var tableKind = schema.GroupKind{Group: metav1.GroupName, Kind: "Table"}

func retype(raw json.RawMessage, kind apiwatch.EventType) json.RawMessage {
	var event frame
	if json.Unmarshal(raw, &event) != nil {
		return raw
	}
	event.Type = kind
	changed, err := json.Marshal(event)
	if err != nil {
		return raw
	}
	return changed
}
