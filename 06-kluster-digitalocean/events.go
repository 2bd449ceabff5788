package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/scheme"
)

const (
	// actionSync is what the controller was doing at the time of any event.
	actionSync = "Sync"
	// flushTimeout bounds how long events may hold the shutdown up.
	flushTimeout = 2 * time.Second
	flushPeriod  = 5 * time.Millisecond
)

// eventBackoff gets an event over a hiccup of the API server. After that it is dropped: the status says the same.
var eventBackoff = wait.Backoff{Steps: 4, Duration: 50 * time.Millisecond, Factor: 3}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// recorder emits events without making syncs wait for the API server. It counts
// those on their way, so that stop can wait for them; client-go's
// StartRecordingToSink writes each in a goroutine of its own that nobody can wait for.
type recorder struct {
	events.EventRecorder
	broadcaster events.EventBroadcaster
	sink        events.EventSink
	pending     atomic.Int64
}

// startRecorder begins to write events. The end of ctx cuts writes off.
func startRecorder(ctx context.Context, kube kubernetes.Interface) (*recorder, error) {
	sink := &events.EventSinkImpl{Interface: kube.EventsV1()}
	broadcaster := events.NewBroadcaster(sink)
	r := &recorder{
		EventRecorder: broadcaster.NewRecorder(scheme.Scheme, programName),
		broadcaster:   broadcaster,
		sink:          sink,
	}
	_, err := broadcaster.StartEventWatcher(func(object runtime.Object) {
		defer r.pending.Add(-1)
		if err := r.write(ctx, object.(*eventsv1.Event)); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "An event is lost")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("start the event recorder: %w", err)
	}
	return r, nil
}

// Eventf emits an event; see [events.EventRecorder].
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.pending.Add(1)
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// write creates the event. A second try after a lost reply finds it there already.
func (r *recorder) write(ctx context.Context, event *eventsv1.Event) error {
	worthRetrying := func(err error) bool {
		return ctx.Err() == nil && !apierrors.IsAlreadyExists(err) && !isRefusal(err) && !isNamespaceGoing(err)
	}
	err := retry.OnError(eventBackoff, worthRetrying, func() error {
		_, err := r.sink.Create(ctx, event)
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) && !isNamespaceGoing(err) {
		return fmt.Errorf("create event %s for %s %s/%s: %w", event.Reason, event.Regarding.Kind, event.Regarding.Namespace, event.Regarding.Name, err)
	}
	return nil
}

// stop waits until the events on their way are written, and ends the recorder's goroutines.
func (r *recorder) stop() {
	_ = wait.PollUntilContextTimeout(context.Background(), flushPeriod, flushTimeout, true, func(context.Context) (bool, error) {
		return r.pending.Load() == 0, nil
	}) // an event that can't be written in time is lost
	r.broadcaster.Shutdown()
}
