package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	"example.com/operator-workshop/lifecycle"
)

var _ = Describe("the end of a run", func() {
	It("waits for the work in progress, and then releases the Lease", func(ctx SpecContext) {
		slow := newSlowCreates()
		namespace := cluster.Namespace(ctx)
		stop, ended := runWith(slow.wrap, electing(testOptions(namespace)))
		foo := newFoo(namespace, "slow", "slow")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		Eventually(slow.begun).WithContext(ctx).Should(Receive())

		stop()
		Consistently(ended).WithContext(ctx).WithTimeout(quietTime/2).ShouldNot(Receive(), "run must wait for its workers, see work in controller.go")
		Expect(leaseHolder(ctx, namespace)).NotTo(BeEmpty(), "another replica must not begin yet, see run in run.go")
		close(slow.proceed)
		Eventually(ended).WithContext(ctx).Should(Receive(BeNil()))
		_, err := getDeployment(ctx, namespace, "slow")
		Expect(err).NotTo(HaveOccurred(), "a request in progress must not be cut off")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentProgressing)
		Expect(leaseHolder(ctx, namespace)).To(BeEmpty(), "another replica must be able to begin immediately, see release in lease.go")
	}, SpecTimeout(specTimeout))

	It("comes with an error when the work takes too long", func(ctx SpecContext) {
		slow := newSlowCreates()
		namespace := cluster.Namespace(ctx)
		options := testOptions(namespace)
		options.drainTimeout = 100 * time.Millisecond
		stop, ended := runWith(slow.wrap, options)
		Expect(cluster.Client.Create(ctx, newFoo(namespace, "stuck", "stuck"))).To(Succeed())
		Eventually(slow.begun).WithContext(ctx).Should(Receive())

		stop()
		var err error
		Eventually(ended).WithContext(ctx).WithTimeout(convergeTimeout).Should(Receive(&err), "see work in controller.go")
		Expect(err).To(MatchError(ContainSubstring("work was still in progress 100ms after the signal to stop")))
	}, SpecTimeout(specTimeout))

	It("comes immediately when the Lease is lost", func(ctx SpecContext) {
		slow := newSlowCreates()
		var unreachable atomic.Bool
		wrap := func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if unreachable.Load() && strings.Contains(request.URL.Path, "/leases") {
					return nil, errors.New("the network is down")
				}
				return slow.wrap(next).RoundTrip(request)
			})
		}
		namespace := cluster.Namespace(ctx)
		options := electing(testOptions(namespace))
		options.LeaderElection.LeaseDuration, options.LeaderElection.RenewDeadline = 2*time.Second, time.Second
		options.drainTimeout = time.Hour // nothing is drained without the Lease
		_, ended := runWith(wrap, options)
		Expect(cluster.Client.Create(ctx, newFoo(namespace, "lost", "lost"))).To(Succeed())
		Eventually(slow.begun).WithContext(ctx).Should(Receive())

		unreachable.Store(true)
		var err error
		Eventually(ended).WithContext(ctx).WithTimeout(convergeTimeout).Should(Receive(&err), "see work in controller.go")
		Expect(err).To(MatchError(errLeaseLost))
		_, err = getDeployment(ctx, namespace, "lost")
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred(), "the request in progress must be cut off, because another replica may already be working")
	}, SpecTimeout(specTimeout))

	It("can come while the controller waits for the Lease", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		stopLeader, leaderEnded := runWith(nil, electing(testOptions(namespace)))
		Eventually(leaseHolder).WithContext(ctx).WithArguments(namespace).Should(Not(BeEmpty()))
		leader := leaseHolder(ctx, namespace)
		stopStandby, standbyEnded := runWith(nil, electing(testOptions(namespace)))
		Consistently(standbyEnded).WithContext(ctx).WithTimeout(quietTime / 2).ShouldNot(Receive())

		stopStandby()
		Eventually(standbyEnded).WithContext(ctx).Should(Receive(BeNil()))
		Expect(leaseHolder(ctx, namespace)).To(Equal(leader), "a standby must not release what it does not hold")
		stopLeader()
		Eventually(leaderEnded).WithContext(ctx).Should(Receive(BeNil()))
	}, SpecTimeout(specTimeout))
})

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// slowCreates holds up the creation of Deployments.
type slowCreates struct {
	begun   chan struct{}
	proceed chan struct{}
}

func newSlowCreates() *slowCreates {
	return &slowCreates{begun: make(chan struct{}, 1), proceed: make(chan struct{})}
}

func (s *slowCreates) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, "/deployments") {
			return next.RoundTrip(request)
		}
		s.begun <- struct{}{}
		select {
		case <-s.proceed:
			return next.RoundTrip(request)
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	})
}

// runWith runs a controller until stop is called or the spec ends. Unless wrap is nil, the controller's requests go
// through it.
func runWith(wrap func(http.RoundTripper) http.RoundTripper, options options) (stop func(), ended chan error) {
	config := rest.CopyConfig(cluster.Config)
	if wrap != nil {
		config.Wrap(wrap)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		ended <- run(ctx, config, options)
	}()
	DeferCleanup(func(ctx SpecContext) {
		stop()
		Eventually(returned).WithContext(ctx).Should(BeClosed())
	}, NodeTimeout(specTimeout))
	return stop, ended
}

// electing turns leader election on, with a Lease in the namespace of the Foos.
func electing(options options) options {
	options.LeaderElection = lifecycle.LeaderElection{
		Enabled:       true,
		Namespace:     options.namespace,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   200 * time.Millisecond,
	}
	return options
}

// leaseHolder returns the identity of the replica that holds the Lease, or "" if there is none or the Lease can't
// be read.
func leaseHolder(ctx context.Context, namespace string) string {
	lease := &coordinationv1.Lease{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestWorkLogsItsEnd(t *testing.T) {
	g := NewWithT(t)
	c := newHandlers(t)
	c.workers, c.drain = 0, time.Minute // without workers, both keys stay in the queue
	c.queue.Add(cache.NewObjectName("shop", "first"))
	c.queue.Add(cache.NewObjectName("shop", "second"))
	logged := gbytes.NewBuffer()
	leading := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logged))))
	ctx, signal := context.WithCancel(leading)
	signal()
	ended := make(chan error, 1)
	go func() { ended <- c.work(ctx, leading, &events.FakeRecorder{}) }()
	g.Eventually(ended).Should(Receive(BeNil()))
	g.Expect(logged).To(gbytes.Say(`Stopping.*\b2\b`),
		"the context's logger must log \"Stopping\" with the number of queued keys, see work in controller.go")
	g.Expect(logged).To(gbytes.Say("Stopped"),
		"the context's logger must log \"Stopped\" after the workers have returned, see work in controller.go")
}
