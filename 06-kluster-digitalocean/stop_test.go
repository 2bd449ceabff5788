package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
	"example.com/operator-workshop/lifecycle"
)

var _ = Describe("the end of a run", func() {
	It("waits for the request to the cloud that is in progress, and then releases the Lease", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startAtEnd(namespace)
		begun, proceed := holdCreations(clouds.of(namespace))
		stop, ended := runWith(nil, electing(testOptions(namespace)))
		kluster := create(ctx, namespace, "slow")
		Eventually(begun).WithContext(ctx).Should(Receive())

		stop()
		Consistently(ended).WithContext(ctx).WithTimeout(quietTime/2).ShouldNot(Receive(), "run must wait for its workers, see work in controller.go")
		Expect(leaseHolder(ctx, namespace)).NotTo(BeEmpty(), "another replica must not begin yet, see run in run.go")
		proceed()
		Eventually(ended).WithContext(ctx).Should(Receive(BeNil()))
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
		Expect(kluster.Annotations).To(HaveKey(klusterv1alpha1.ExternalNameAnnotation), "the operator must record the ID from the response")
		Expect(leaseHolder(ctx, namespace)).To(BeEmpty(), "another replica must be able to begin immediately, see Release in package lifecycle")
	}, SpecTimeout(specTimeout))

	It("is an error when the cloud takes too long, and the next run finds the cluster", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		begun, proceed := holdCreations(clouds.of(namespace))
		options := testOptions(namespace)
		options.drainTimeout = 100 * time.Millisecond
		stop, ended := runWith(nil, options)
		kluster := create(ctx, namespace, "stuck")
		Eventually(begun).WithContext(ctx).Should(Receive())

		stop()
		var err error
		Eventually(ended).WithContext(ctx).Should(Receive(&err))
		Expect(err).To(MatchError(ContainSubstring("work was still in progress 100ms after the signal to stop")))
		proceed()
		startOperator(testOptions(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("comes immediately when the Lease is lost", func(ctx SpecContext) {
		var unreachable atomic.Bool
		wrap := func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if unreachable.Load() && strings.Contains(request.URL.Path, "/leases") {
					return nil, errors.New("the network is down")
				}
				return next.RoundTrip(request)
			})
		}
		namespace := newNamespace(ctx)
		begun, proceed := holdCreations(clouds.of(namespace))
		options := electing(testOptions(namespace))
		options.LeaderElection.LeaseDuration, options.LeaderElection.RenewDeadline = 2*time.Second, time.Second
		options.drainTimeout = time.Hour // without the Lease, the operator must not drain the queue
		_, ended := runWith(wrap, options)
		kluster := create(ctx, namespace, "lost")
		Eventually(begun).WithContext(ctx).Should(Receive())

		unreachable.Store(true)
		var err error
		Eventually(ended).WithContext(ctx).WithTimeout(convergeTimeout).Should(Receive(&err), "see work in controller.go")
		Expect(err).To(MatchError(errLeaseLost))
		proceed()
		startOperator(testOptions(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))
})

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// holdCreations holds up creations of clusters until proceed is called or the spec ends. begun receives a value when
// the first one arrives.
func holdCreations(account *doks.Emulator) (begun <-chan struct{}, proceed func()) {
	arrived, released := make(chan struct{}, 1), make(chan struct{})
	proceed = sync.OnceFunc(func() { close(released) })
	account.Interrupt(func(call doks.Call) (func() error, error) {
		if call.Operation == "create cluster" {
			select {
			case arrived <- struct{}{}:
			default:
			}
			<-released
		}
		return nil, nil
	})
	DeferCleanup(proceed)
	return arrived, proceed
}

// startAtEnd runs another operator after the spec's operators have ended, to clean up after them.
func startAtEnd(namespace string) {
	DeferCleanup(func(ctx SpecContext) {
		ending, end := context.WithCancel(ctx)
		defer end()
		ended := make(chan error, 1)
		go func() { ended <- run(ending, cluster.Config, testOptions(namespace)) }()
		removeKlusters(ctx, namespace)
		end()
		Eventually(ended).WithContext(ctx).Should(Receive(BeNil()))
	}, NodeTimeout(specTimeout))
}

// electing turns leader election on, with a Lease in the namespace of the Klusters.
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

// leaseHolder returns the identity of the leader, or "" if there is none or the Lease can't be read.
func leaseHolder(ctx context.Context, namespace string) string {
	lease := &coordinationv1.Lease{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: programName}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
