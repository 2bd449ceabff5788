package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned/scheme"
)

const (
	// eventSynced is the reason of the event for a Foo that has become ready. Warnings have the condition's reason.
	eventSynced = "Synced"
	// actionSync is the action in all events.
	actionSync = "Sync"
	// maxEvents is how many events may wait to be written. Further ones are dropped; the status has the same
	// information.
	maxEvents = 1000
	// maxSeries is how many series the recorder remembers.
	maxSeries = 4096
	// maxNote is the maximum length of a note, in bytes, that the API server accepts.
	maxNote = 1024
	// flushTimeout bounds how long events may delay the shutdown.
	flushTimeout = 2 * time.Second
)

// eventBackoff is long enough for an event to survive a brief failure of the API server. After the last try, the event
// is dropped.
var eventBackoff = wait.Backoff{Steps: 4, Duration: 50 * time.Millisecond, Factor: 3}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// recorder emits events without making syncs wait for the API server: one
// goroutine writes them in order. It is an [events.EventRecorder].
//
// client-go's broadcaster writes each event in a goroutine that the program can't wait for, and tries only once if
// the API server answers with an error. The broadcaster also compares resource versions, so it never recognises a
// repetition if the status was written in between.
type recorder struct {
	events   typedeventsv1.EventsV1Interface
	instance string
	queue    chan *eventsv1.Event
	// series holds the series written since the map was last cleared. Only the writer's goroutine uses the map.
	series map[seriesKey]series
	// abort cancels the writes. The writer closes stopped when it ends.
	abort   context.CancelFunc
	stopped chan struct{}
}

// seriesKey is what the events of a series have in common. Their notes may differ.
type seriesKey struct {
	regarding                 types.UID
	eventType, reason, action string
}

// series contains the name of an Event, and how often the event has occurred.
type series struct {
	name  string
	count int32
}

// startRecorder starts the goroutine that writes the events. When ctx is done, writes are aborted.
func startRecorder(ctx context.Context, events typedeventsv1.EventsV1Interface) (*recorder, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the reporter of events: %w", err)
	}
	ctx, abort := context.WithCancel(ctx)
	r := &recorder{
		events:   events,
		instance: programName + "-" + host,
		queue:    make(chan *eventsv1.Event, maxEvents),
		series:   map[seriesKey]series{},
		abort:    abort,
		stopped:  make(chan struct{}),
	}
	go func() {
		defer close(r.stopped)
		for event := range r.queue {
			if err := r.write(ctx, event); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Failed to write an event")
			}
		}
	}()
	return r, nil
}

// Eventf queues an event for the writer. If the queue is full, Eventf drops the event, and logs a message. It must
// not be called after stop.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	event, err := r.newEvent(regarding, related)
	if err != nil {
		klog.Background().Error(err, "Failed to make an event", "reason", reason)
		return
	}
	event.Type, event.Reason, event.Action = eventType, reason, action
	note = fmt.Sprintf(note, args...)
	event.Note = strings.ToValidUTF8(note[:min(len(note), maxNote)], "")
	select {
	case r.queue <- event:
	default:
		klog.Background().Info("Dropped an event: too many are waiting to be written", "object", klog.KRef(event.Namespace, event.Regarding.Name), "reason", reason)
	}
}

// newEvent returns an event about regarding; related may be nil.
func (r *recorder) newEvent(regarding, related runtime.Object) (*eventsv1.Event, error) {
	about, err := reference.GetReference(scheme.Scheme, regarding)
	if err != nil {
		return nil, fmt.Errorf("refer to the object of an event: %w", err)
	}
	other, err := reference.GetReference(scheme.Scheme, related)
	if err != nil && related != nil {
		return nil, fmt.Errorf("refer to the related object of an event: %w", err)
	}
	now := metav1.NowMicro()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Name: util.GenerateEventName(about.Name, now.UnixNano())},
		EventTime:           now,
		ReportingController: programName,
		ReportingInstance:   r.instance,
		Regarding:           *about,
		Related:             other,
	}, nil
}

// write creates or counts the event, and retries after errors that may be temporary. If the namespace is being deleted,
// write drops the event without an error.
func (r *recorder) write(ctx context.Context, event *eventsv1.Event) error {
	worthRetrying := func(err error) bool { return ctx.Err() == nil && !isRefusal(err) && !isNamespaceTerminating(err) }
	err := retry.OnError(eventBackoff, worthRetrying, func() error { return r.createOrCount(ctx, event) })
	if err != nil && !isNamespaceTerminating(err) {
		return fmt.Errorf("write event %s for %s %s/%s: %w", event.Reason, event.Regarding.Kind, event.Regarding.Namespace, event.Regarding.Name, err)
	}
	return nil
}

// createOrCount creates the event or, if it repeats an earlier one, increments the count of the earlier one. Without
// counts, a Foo that keeps becoming ready and unready would fill the API server with Events.
func (r *recorder) createOrCount(ctx context.Context, event *eventsv1.Event) error {
	client := r.events.Events(event.Namespace)
	key := seriesKey{event.Regarding.UID, event.Type, event.Reason, event.Action}
	if known, found := r.series[key]; found {
		known.count++
		patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: known.count, LastObservedTime: event.EventTime}})
		if err != nil {
			return fmt.Errorf("encode the series: %w", err)
		}
		_, err = client.Patch(ctx, known.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			r.series[key] = known
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The Event is gone: by default, Events expire after an hour.
	}
	_, err := client.Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) { // it exists if the reply to an earlier try was lost
		return err
	}
	if len(r.series) >= maxSeries {
		clear(r.series) // a forgotten series starts again at 1
	}
	r.series[key] = series{name: event.Name, count: 1}
	return nil
}

// stop waits, for at most flushTimeout, until the queued events are written. Then it ends the writer.
func (r *recorder) stop() {
	close(r.queue)
	timeout := time.AfterFunc(flushTimeout, r.abort)
	<-r.stopped
	timeout.Stop()
	r.abort()
}
