package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// event returns an event of a watch, about a ConfigMap with the given name and resource version.
func event(kind apiwatch.EventType, name string, version int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"here","name":%q,"resourceVersion":"%d"}}}`, kind, name, version))
}

// tableEvent returns an event about a change, as a watch of Tables reports it.
func tableEvent(name string, version int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type":"MODIFIED","object":{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"%[2]d"},"columnDefinitions":null,"rows":[{"cells":[%[1]q,"1"],`+
			`"object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"here","name":%[1]q,"resourceVersion":"%[2]d"}}}]}}`, name, version))
}

// initialEnd follows the objects with which a watch begins.
var initialEnd = json.RawMessage(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}}`)

func TestLatest(t *testing.T) {
	expired := json.RawMessage(`{"type":"ERROR","object":{"kind":"Status","code":410}}`)
	tests := map[string]struct{ events, want []json.RawMessage }{
		"nothing": {},
		"one change": {
			events: []json.RawMessage{event("MODIFIED", "a", 1)},
			want:   []json.RawMessage{event("MODIFIED", "a", 1)},
		},
		"many changes": {
			events: []json.RawMessage{event("MODIFIED", "a", 1), event("MODIFIED", "a", 2), event("MODIFIED", "a", 3)},
			want:   []json.RawMessage{event("MODIFIED", "a", 3)},
		},
		"created and changed": {
			events: []json.RawMessage{event("ADDED", "a", 1), event("MODIFIED", "a", 2)},
			want:   []json.RawMessage{event("ADDED", "a", 2)},
		},
		"created and deleted, as if it had never existed": {
			events: []json.RawMessage{event("ADDED", "a", 1), event("MODIFIED", "a", 2), event("DELETED", "a", 3)},
		},
		"changed and deleted": {
			events: []json.RawMessage{event("MODIFIED", "a", 1), event("DELETED", "a", 2)},
			want:   []json.RawMessage{event("DELETED", "a", 2)},
		},
		"deleted and recreated, as if it had changed": {
			events: []json.RawMessage{event("DELETED", "a", 1), event("ADDED", "a", 2)},
			want:   []json.RawMessage{event("MODIFIED", "a", 2)},
		},
		"deleted, recreated and changed": {
			events: []json.RawMessage{event("DELETED", "a", 1), event("ADDED", "a", 2), event("MODIFIED", "a", 3)},
			want:   []json.RawMessage{event("MODIFIED", "a", 3)},
		},
		"deleted, recreated and deleted": {
			events: []json.RawMessage{event("DELETED", "a", 1), event("ADDED", "a", 2), event("DELETED", "a", 3)},
			want:   []json.RawMessage{event("DELETED", "a", 3)},
		},
		"several objects, in the order of their last events": {
			events: []json.RawMessage{event("MODIFIED", "a", 1), event("ADDED", "b", 2), event("MODIFIED", "a", 3)},
			want:   []json.RawMessage{event("ADDED", "b", 2), event("MODIFIED", "a", 3)},
		},
		"bookmarks stay: one of them says that the initial events are complete": {
			events: []json.RawMessage{event("ADDED", "a", 1), initialEnd, event("MODIFIED", "a", 3), event("BOOKMARK", "", 4)},
			want:   []json.RawMessage{initialEnd, event("ADDED", "a", 3), event("BOOKMARK", "", 4)},
		},
		"the rows of tables": {
			events: []json.RawMessage{tableEvent("a", 1), tableEvent("b", 2), tableEvent("a", 3)},
			want:   []json.RawMessage{tableEvent("b", 2), tableEvent("a", 3)},
		},
		"an error stays": {
			events: []json.RawMessage{event("MODIFIED", "a", 1), expired},
			want:   []json.RawMessage{event("MODIFIED", "a", 1), expired},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kept := latest(test.events)
			g.Expect(kept).To(HaveLen(len(test.want)), "%s", kept)
			for i := range kept {
				g.Expect(kept[i]).To(MatchJSON(test.want[i]))
			}
		})
	}
}

// stream is an API server whose watches send what a test gives them.
type stream struct {
	config *rest.Config
	events chan json.RawMessage
	// watches counts the watches that the server is serving. Each event goes to only one of them.
	watches atomic.Int32
}

func newStream(t *testing.T) *stream {
	made := &stream{events: make(chan json.RawMessage)}
	listening := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		made.watches.Add(1)
		defer made.watches.Add(-1)
		reply.Header().Set("Content-Type", "application/json")
		flush := reply.(http.Flusher).Flush
		flush()
		for {
			select {
			case event := <-made.events:
				_, _ = reply.Write(append(event, '\n'))
				flush()
			case <-request.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(listening.Close)
	made.config = &rest.Config{Host: listening.URL, QPS: -1}
	return made
}

// watching starts a watch of ConfigMaps, as an operator would.
func watching(t *testing.T, tap *Tap, config *rest.Config) apiwatch.Interface {
	g := NewWithT(t)
	begun, err := newClient(g, tap, config).CoreV1().ConfigMaps("here").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(begun.Stop)
	return begun
}

// next returns the next event that the operator sees, in a form such as "MODIFIED a 2".
func next(g Gomega, seen apiwatch.Interface) string {
	var got apiwatch.Event
	g.EventuallyWithOffset(1, seen.ResultChan()).WithTimeout(waitTimeout).Should(Receive(&got))
	object, err := meta.Accessor(got.Object)
	g.ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return fmt.Sprintf("%s %s %s", got.Type, object.GetName(), object.GetResourceVersion())
}

func ofConfigMaps(request Request) bool { return request.Resource == "configmaps" }

// pendingIn waits until the Tap holds this many events that the operator has not seen.
func pendingIn(g Gomega, tap *Tap, count int) {
	g.EventuallyWithOffset(1, tap.Kept).WithArguments(ofConfigMaps).WithTimeout(waitTimeout).Should(Equal(count))
}

func TestHold(t *testing.T) {
	tests := map[string]struct {
		how  Release
		want []string
	}{
		"late, all of them":         {how: Late, want: []string{"MODIFIED a 2", "MODIFIED a 3", "ADDED b 4"}},
		"the latest of each object": {how: Latest, want: []string{"MODIFIED a 3", "ADDED b 4"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, server, tap := NewWithT(t), newStream(t), New()
			seen := watching(t, tap, server.config)
			server.events <- event("ADDED", "a", 1)
			g.Expect(next(g, seen)).To(Equal("ADDED a 1"))

			release := tap.Hold(ofConfigMaps)
			server.events <- event("MODIFIED", "a", 2)
			server.events <- event("MODIFIED", "a", 3)
			server.events <- event("ADDED", "b", 4)
			pendingIn(g, tap, 3)
			g.Expect(seen.ResultChan()).NotTo(Receive(), "held events must not be seen")

			release(test.how)
			for _, want := range test.want {
				g.Expect(next(g, seen)).To(Equal(want))
			}
			server.events <- event("MODIFIED", "b", 5)
			g.Expect(next(g, seen)).To(Equal("MODIFIED b 5"), "later events must not be held")

			var events []string
			for _, each := range tap.Events() {
				g.Expect(each.Resource).To(Equal("configmaps"))
				events = append(events, fmt.Sprintf("%s %s %s", each.Type, each.Name, each.Version))
			}
			g.Expect(events).To(Equal(slices.Concat([]string{"ADDED a 1"}, test.want, []string{"MODIFIED b 5"})), "the Tap must have recorded what reached the operator")
		})
	}
}

func TestHoldsOverlap(t *testing.T) {
	g, server, tap := NewWithT(t), newStream(t), New()
	first := tap.Hold(ofConfigMaps)
	seen := watching(t, tap, server.config) // a hold also applies to watches that begin later
	second := tap.Hold(ofConfigMaps)
	server.events <- event("ADDED", "a", 1)
	pendingIn(g, tap, 1)

	first(Latest)
	pendingIn(g, tap, 1)
	g.Expect(seen.ResultChan()).NotTo(Receive(), "the second hold must still keep back the event")

	second(Late)
	g.Expect(next(g, seen)).To(Equal("ADDED a 1"))
}

func TestHoldLetsTheListPass(t *testing.T) {
	g, tap := NewWithT(t), New()
	release := tap.Hold(ofConfigMaps)
	first, later := event("ADDED", "a", 1), event("ADDED", "b", 3)
	body := tap.openWatch(Request{Verb: "watch", Resource: "configmaps", Lists: true}, nil,
		io.NopCloser(strings.NewReader(fmt.Sprintf("%s\n%s\n%s\n", first, initialEnd, later))))
	seen := bufio.NewScanner(body)
	next := func() []byte {
		g.Expect(seen.Scan()).To(BeTrue(), "%v", seen.Err())
		return seen.Bytes()
	}
	g.Expect(next()).To(MatchJSON(first))
	g.Expect(next()).To(MatchJSON(initialEnd))
	pendingIn(g, tap, 1)
	release(Late)
	g.Expect(next()).To(MatchJSON(later))
}

func TestHoldOfOtherWatches(t *testing.T) {
	g, server, tap := NewWithT(t), newStream(t), New()
	release := tap.Hold(func(request Request) bool { return request.Resource == "secrets" })
	defer release(Late)
	seen := watching(t, tap, server.config)
	server.events <- event("ADDED", "a", 1)
	g.Expect(next(g, seen)).To(Equal("ADDED a 1"))
}

func TestEndOfWatches(t *testing.T) {
	tests := map[string]struct {
		end func(g Gomega, tap *Tap, config *rest.Config)
		// again means that a new watch can be started.
		again bool
	}{
		"cut":           {end: func(_ Gomega, tap *Tap, _ *rest.Config) { tap.CutWatches() }, again: true},
		"cut by a rule": {end: cutByRule, again: true},
		"killed":        {end: func(_ Gomega, tap *Tap, _ *rest.Config) { tap.Kill() }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, server, tap := NewWithT(t), newStream(t), New()
			seen := watching(t, tap, server.config)
			server.events <- event("ADDED", "a", 1)
			g.Expect(next(g, seen)).To(Equal("ADDED a 1"))

			test.end(g, tap, newServer(t).config)

			g.Eventually(seen.ResultChan()).WithTimeout(waitTimeout).Should(BeClosed())
			if !test.again {
				_, err := newClient(g, tap, server.config).CoreV1().ConfigMaps("here").Watch(t.Context(), metav1.ListOptions{})
				g.Expect(err).To(MatchError(ErrKilled))
				return
			}
			g.Eventually(server.watches.Load).WithTimeout(waitTimeout).Should(BeZero())
			another := watching(t, tap, server.config)
			server.events <- event("MODIFIED", "a", 2)
			g.Expect(next(g, another)).To(Equal("MODIFIED a 2"))
		})
	}
}

// cutByRule breaks the watches at a write, which still takes effect.
func cutByRule(g Gomega, tap *Tap, config *rest.Config) {
	tap.SetRule(func(request Request) Action { return Action{CutWatches: request.IsWrite()} })
	clients := newClient(g, tap, config)
	_, err := clients.CoreV1().ConfigMaps("here").Patch(context.Background(), "settings", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// An operator may die between the reply to a watch request and the watch's first event.
func TestWatchThatBeginsAfterAKill(t *testing.T) {
	g, tap := NewWithT(t), New()
	tap.Kill()
	body := tap.openWatch(Request{Verb: "watch"}, nil, io.NopCloser(strings.NewReader(string(event("ADDED", "a", 1)))))
	_, err := io.ReadAll(body)
	g.Expect(err).To(MatchError(ErrKilled))
}

func TestWatchThatIsNotJSON(t *testing.T) {
	g, tap := NewWithT(t), New()
	listening := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
		reply.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = io.Copy(reply, strings.NewReader("k8s"))
	}))
	defer listening.Close()
	transport := &transport{tap: tap, next: http.DefaultTransport}
	request, err := http.NewRequest(http.MethodGet, listening.URL+configMaps+"?watch=true", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(failure(transport, request)).To(MatchError(ContainSubstring("although the test kit asked for JSON, which is all that it can read")))
}
