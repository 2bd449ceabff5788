package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/lifecycle"
)

const (
	// leaseName is the name of the Lease through which the replicas agree on a leader.
	leaseName = programName
	// healthTolerance is how long a leader still counts as healthy after its Lease has expired.
	healthTolerance = 20 * time.Second
	// releaseTimeout limits how long the two requests that release the Lease may take.
	releaseTimeout = 5 * time.Second
)

// lease is the right to work, which only one replica has at a time. Without leader election, every replica has it.
type lease struct {
	lock    resourcelock.Interface
	elector *leaderelection.LeaderElector
	health  *leaderelection.HealthzAdaptor
	// leading receives the context that is cancelled when the Lease is lost or released.
	leading chan context.Context
	// stop ends the elector, and stopped is closed once the elector has ended. Both are nil before acquire.
	stop    context.CancelFunc
	stopped chan struct{}
}

// A replica needs these permissions only in the namespace of the Lease, which is its own by default.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=foo-system,roleName=foo-controller-leader-election,resources=leases,verbs=get;create;update

func newLease(kube kubernetes.Interface, options lifecycle.LeaderElection) (*lease, error) {
	l := &lease{leading: make(chan context.Context, 1), health: leaderelection.NewLeaderHealthzAdaptor(healthTolerance)}
	if !options.Enabled {
		return l, nil
	}
	identity, err := newIdentity(options.Identity)
	if err != nil {
		return nil, err
	}
	l.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.Namespace, Name: leaseName},
		Client:     kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	// ReleaseOnCancel is not set, because it would also release the Lease after a failed renewal, before the leading
	// context is cancelled. Another replica could then begin while this one is still writing. See release.
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          leaseName,
		Lock:          l.lock,
		LeaseDuration: options.LeaseDuration,
		RenewDeadline: options.RenewDeadline,
		RetryPeriod:   options.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { l.leading <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	l.health.SetLeaderElection(l.elector)
	return l, nil
}

// newIdentity returns the given name or, if none is given, a unique one: two processes on one machine need different
// names.
func newIdentity(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this replica: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// acquire waits until this replica holds the Lease, and returns an error if ctx is done
// first. Without leader election, it doesn't wait. The context that it returns is
// cancelled when the Lease is lost or released, but not when ctx is done: work in
// progress is finished while the Lease is still held.
func (l *lease) acquire(ctx context.Context) (context.Context, error) {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.stopped = stop, make(chan struct{})
	if l.elector == nil {
		close(l.stopped)
		return electing, nil
	}
	go func() {
		defer close(l.stopped)
		l.elector.Run(electing)
	}()
	select {
	case leading := <-l.leading:
		return leading, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the Lease: %w", ctx.Err())
	}
}

// release gives up the Lease, so that another replica need not wait until it expires. Call release only
// after the last write.
func (l *lease) release(ctx context.Context) {
	if l.stop == nil {
		return
	}
	l.stop()
	<-l.stopped
	if l.elector == nil || !l.elector.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := l.clear(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to release the Lease: the next leader must wait until it expires")
	}
}

// clear removes the holder from the Lease, unless another replica has taken it over.
func (l *lease) clear(ctx context.Context) error {
	record, _, err := l.lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("get the Lease: %w", err)
	}
	if record.HolderIdentity != l.lock.Identity() {
		return nil
	}
	now := metav1.Now()
	record = &resourcelock.LeaderElectionRecord{
		LeaderTransitions:    record.LeaderTransitions,
		LeaseDurationSeconds: 1,
		AcquireTime:          now,
		RenewTime:            now,
	}
	if err := l.lock.Update(ctx, *record); err != nil {
		return fmt.Errorf("release the Lease: %w", err)
	}
	return nil
}

// Check fails if this replica leads, but its Lease expired more than healthTolerance ago.
func (l *lease) Check(request *http.Request) error { return l.health.Check(request) }
