package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
)

func TestRecorderCountsRepetitions(t *testing.T) {
	g := NewWithT(t)
	store := &eventStore{}
	recorder := store.startRecorder(t.Context(), g)
	one, other := configMap(), configMap()
	other.UID = "uid-of-another"
	for i := range 30 {
		one.ResourceVersion = fmt.Sprint(i) // each write of the status makes a new one
		recorder.Eventf(one, nil, corev1.EventTypeWarning, "Broken", "Sync", "try %d", i)
		recorder.Eventf(one, nil, corev1.EventTypeNormal, "Repaired", "Sync", "try %d", i)
	}
	recorder.Eventf(other, one, corev1.EventTypeNormal, "Repaired", "Sync", "once")
	recorder.Stop()

	g.Expect(store.events).To(HaveExactElements(
		And(HaveField("Reason", "Broken"), HaveField("Note", "try 0"), HaveField("Series.Count", BeEquivalentTo(30))),
		And(HaveField("Reason", "Repaired"), HaveField("Note", "try 0"), HaveField("Series.Count", BeEquivalentTo(30))),
		And(HaveField("Regarding.UID", other.UID), HaveField("Related.UID", one.UID), HaveField("Series", BeNil())),
	), "an object that becomes ready and unready again and again must not fill the API server, see createOrCount in events.go")
}

func TestRecorderHandlesErrors(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		// fail returns the error for a request that is not carried out; lose returns the error for a request whose reply
		// is lost. Requests are numbered from 1.
		fail, lose func(verb string, request int) error
		// want is the count of each stored Event.
		want []int32
	}{
		"every other request fails": {
			fail: func(_ string, request int) error { return []error{nil, internal}[request%2] },
			want: []int32{3},
		},
		"every other reply is lost": {
			lose: func(_ string, request int) error { return []error{nil, errors.New("connection reset")}[request%2] },
			want: []int32{3},
		},
		"Events have expired before they are counted again": {
			fail: func(verb string, _ int) error {
				return map[string]error{"patch": apierrors.NewNotFound(eventsv1.Resource("events"), "front")}[verb]
			},
			want: []int32{1, 1, 1},
		},
		"the namespace has no room for Events": {
			fail: func(string, int) error {
				return apierrors.NewForbidden(eventsv1.Resource("events"), "front", errors.New("quota"))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := &eventStore{fail: test.fail, lose: test.lose}
			recorder := store.startRecorder(t.Context(), g)
			for range 3 {
				recorder.Eventf(configMap(), nil, corev1.EventTypeNormal, "Running", "Sync", "all there")
			}
			recorder.Stop()
			var counts []int32
			for _, event := range store.events {
				count := int32(1)
				if event.Series != nil {
					count = event.Series.Count
				}
				counts = append(counts, count)
			}
			g.Expect(counts).To(Equal(test.want))
		})
	}
}

func TestRecorderStops(t *testing.T) {
	tests := map[string]struct {
		emitted, written int
	}{
		"with an empty queue":                       {emitted: 0, written: 0},
		"after writing the queued events":           {emitted: 100, written: 100},
		"after more events than the queue can hold": {emitted: maxEvents + 500, written: maxEvents},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			begun, proceed := make(chan struct{}, 2*maxEvents), make(chan struct{})
			store := &eventStore{fail: func(string, int) error {
				begun <- struct{}{}
				<-proceed
				return nil
			}}
			recorder := store.startRecorder(t.Context(), g)
			recorder.Eventf(configMap(), nil, corev1.EventTypeNormal, "First", "Sync", "the writer takes it immediately")
			g.Eventually(begun).Should(Receive())
			recorder.Eventf(nil, nil, corev1.EventTypeNormal, "Lost", "Sync", "about nothing")
			for i := range test.emitted {
				recorder.Eventf(configMap(), nil, corev1.EventTypeNormal, fmt.Sprintf("Reason%d", i), "Sync", "one of many")
			}
			close(proceed)
			recorder.Stop()
			g.Expect(store.events).To(HaveLen(1+test.written), "Stop must wait until all queued events are written")
		})
	}
}

func TestRecorderStopsWhenTheLeaseIsLost(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{}, 1)
	store := &eventStore{fail: func(string, int) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	recorder := store.startRecorder(ctx, g)
	recorder.Eventf(configMap(), nil, corev1.EventTypeNormal, "Running", "Sync", "all there")
	g.Eventually(begun).Should(Receive())
	cancel() // the Lease is lost
	recorder.Stop()
	g.Expect(store.requests).To(Equal(1), "no request may be retried, because another replica may already be writing")
}

func TestRecorderShortensNotes(t *testing.T) {
	g := NewWithT(t)
	store := &eventStore{}
	recorder := store.startRecorder(t.Context(), g)
	recorder.Eventf(configMap(), nil, corev1.EventTypeWarning, "Refused", "Sync", "x%s", strings.Repeat("é", 1000))
	recorder.Stop()
	g.Expect(store.events).To(ConsistOf(HaveField("Note", "x"+strings.Repeat("é", 511))), "the API server refuses more than 1024 bytes")
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "uid-of-front"}}
}

// eventStore is a fake API server that stores Events.
type eventStore struct {
	typedeventsv1.EventInterface
	fail, lose func(verb string, request int) error
	requests   int
	events     []*eventsv1.Event
}

func (s *eventStore) startRecorder(ctx context.Context, g Gomega) *Recorder {
	recorder, err := StartRecorder(ctx, s, scheme.Scheme, "test-operator")
	g.Expect(err).NotTo(HaveOccurred())
	return recorder
}

func (s *eventStore) RESTClient() rest.Interface                 { return nil }
func (s *eventStore) Events(string) typedeventsv1.EventInterface { return s }

func (s *eventStore) Create(_ context.Context, event *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	return event, s.do("create", func() error {
		if s.find(event.Name) != nil {
			return apierrors.NewAlreadyExists(eventsv1.Resource("events"), event.Name)
		}
		s.events = append(s.events, event.DeepCopy())
		return nil
	})
}

func (s *eventStore) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*eventsv1.Event, error) {
	return nil, s.do("patch", func() error { return json.Unmarshal(patch, s.find(name)) })
}

func (s *eventStore) find(name string) *eventsv1.Event {
	if i := slices.IndexFunc(s.events, func(event *eventsv1.Event) bool { return event.Name == name }); i >= 0 {
		return s.events[i]
	}
	return nil
}

func (s *eventStore) do(verb string, write func() error) error {
	s.requests++
	if s.fail != nil {
		if err := s.fail(verb, s.requests); err != nil {
			return err
		}
	}
	err := write()
	if err == nil && s.lose != nil {
		err = s.lose(verb, s.requests)
	}
	return err
}
