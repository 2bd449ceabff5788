package trial

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/traffic"
)

// Instance is one running operator.
type Instance struct {
	Tap     *traffic.Tap
	cancel  context.CancelCauseFunc
	timeout time.Duration
	// external means that the operator also calls a system outside Kubernetes. Its Tap doesn't see these calls.
	external bool
	// Stopped means that the operator may exit: the kit told it to stop or killed it, or a trial lets it exit on its own.
	// terminated is when the operator was told to stop, measured from its Tap's creation; it is 0 if it wasn't.
	Stopped    bool
	terminated time.Duration
	// Done is closed when Run has returned or panicked; Err is the error that it returned, or describes the panic.
	Done chan struct{}
	Err  error

	// label is the value of the profiler label of the operator's goroutines; instanceLabel is its key.
	label string
	log   *operatorLog
	// group is the ID of the operator's process group. It is 0 if the operator runs in this process, or has not
	// reported the group yet.
	group atomic.Int64

	panicMu sync.Mutex
	// panic is the first panic recorded for the operator, with its stack. It is empty if none has been recorded.
	panic string
}

// Start runs an operator that is confined to the trial's namespace, or to both namespaces if the trial has two.
func (t *Trial) Start(options operatortest.RunOptions) *Instance {
	return t.StartOn(traffic.New(), options)
}

// StartOn is like Start, with a tap that is already set up.
func (t *Trial) StartOn(tap *traffic.Tap, options operatortest.RunOptions) *Instance {
	ctx, cancel := context.WithCancelCause(context.Background())
	started := &Instance{
		Tap: tap, cancel: cancel, timeout: t.Operator.Timeout, external: t.Operator.External != nil, Done: make(chan struct{}),
		label: fmt.Sprintf("operator %d of %s in %s", len(t.instances)+1, t.id, t.Namespace), log: &operatorLog{dead: tap.Killed},
	}
	handled.add(started)
	options.Namespace, options.LogFile = t.Namespace, started.log.follow
	options.ProcessGroup = func(id int) { started.group.Store(int64(id)) }
	if t.Operator.ServesWebhooks && options.Webhooks == nil {
		options.Webhooks = t.unusedWebhooks()
	}
	// An operator without controllers may see all trials.
	seesAll := t.Operator.WebhooksOnly && options.Webhooks != nil && options.Webhooks.Only
	if seesAll || t.beside != nil && !t.Operator.Confine {
		options.Namespace = metav1.NamespaceAll
	}
	if !seesAll && (t.beside != nil || t.Operator.Confine) {
		tap.Confine(t.isNamespaced, t.namespaces()...)
	}
	tap.ReadBefore(t.readFor)
	config := t.config(t.user)
	if !seesAll {
		config = t.confine(config)
	}
	config = tap.Config(config)
	go pprof.Do(logr.NewContext(ctx, started.log.logger()), pprof.Labels(instanceLabel, started.label), func(ctx context.Context) {
		defer close(started.Done)
		defer func() {
			if reason := recover(); reason != nil {
				started.notePanic(reason, string(debug.Stack()))
				started.Err = fmt.Errorf("its Run panicked: %v", reason)
			}
		}()
		started.Err = t.Operator.Run(ctx, config, options)
	})
	t.actsMu.Lock()
	t.instances = append(t.instances, started)
	t.actsMu.Unlock()
	if t.beside != nil {
		t.beside.instances = t.instances
	}
	if t != t.webhooks {
		t.noteRun(started.Done)
	}
	return started
}

// Terminate tells the operator to stop, as SIGTERM does.
func (i *Instance) Terminate() {
	i.Stopped, i.terminated = true, i.Tap.Now()
	i.cancel(nil)
}

// Stop tells the operator to stop, and waits until it has. It returns an error if that takes longer than
// Operator.Timeout, or if Run returned one although the operator was not killed.
func (i *Instance) Stop() error {
	i.Terminate()
	select {
	case <-i.Done:
	case <-time.After(i.timeout):
		return fmt.Errorf("expected the operator to stop within %s of being told to\nfound: its Run has not returned", i.timeout)
	}
	if i.Err != nil && !i.Tap.Killed() {
		return fmt.Errorf("expected the operator to stop without an error\nfound: its Run returned %w", i.Err)
	}
	return nil
}

// Kill ends the operator as kill -9 does: the API server gets no more requests from it. A reconcile may still wait,
// until its timeout, for something that it will never see. Kill waits for that reconcile only if the operator could
// still change something outside Kubernetes.
func (i *Instance) Kill() error {
	i.Tap.Kill()
	i.Stopped = true
	i.cancel(traffic.ErrKilled)
	if i.external {
		return i.Stop()
	}
	return nil
}

// Exited reports whether the operator has exited on its own.
func (i *Instance) Exited() bool {
	if i.Stopped {
		return false
	}
	select {
	case <-i.Done:
		return true
	default:
		return false
	}
}

// Writes returns the write requests so far, without those of leader election.
func (i *Instance) Writes() []traffic.Request {
	var writes []traffic.Request
	for _, request := range i.Tap.Requests() {
		if request.IsWrite() && !request.IsLease() {
			writes = append(writes, request)
		}
	}
	return writes
}
