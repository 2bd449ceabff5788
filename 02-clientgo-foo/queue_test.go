package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	listers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/listers/example/v1alpha1"
)

// brokenLister is a cache that can't be read.
type brokenLister struct {
	listers.FooLister
	err error
	// meanwhile is called during each read, unless it is nil.
	meanwhile func()
}

func (l brokenLister) Foos(string) listers.FooNamespaceLister {
	return brokenNamespaceLister{broken: l}
}

type brokenNamespaceLister struct {
	listers.FooNamespaceLister
	broken brokenLister
}

func (l brokenNamespaceLister) Get(string) (*examplev1alpha1.Foo, error) {
	if l.broken.meanwhile != nil {
		l.broken.meanwhile()
	}
	return nil, l.broken.err
}

func TestProcessNext(t *testing.T) {
	g := NewWithT(t)
	c := newHandlers(t)
	working := c.foos
	key := cache.NewObjectName("shop", "gone")

	failures, successes := syncs(g, resultError), syncs(g, resultSuccess)
	c.foos = brokenLister{err: errors.New("the cache is broken")}
	c.queue.Add(key)
	g.Expect(c.processNext(t.Context())).To(BeTrue(), "a worker must go on after a failure")
	g.Expect(c.queue.NumRequeues(key)).To(Equal(1), "a key whose sync has failed must be queued again, after a pause that grows")
	g.Expect(syncs(g, resultError)).To(Equal(failures+1), "observeSync must measure each sync, with its result")

	retries := syncs(g, resultRetry)
	failures = syncs(g, resultError)
	c.foos = brokenLister{err: errStaleCache}
	logged := &bytes.Buffer{}
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logged))))
	g.Expect(c.processNext(ctx)).To(BeTrue(), "a worker must go on after a failure")
	g.Expect(logged.String()).NotTo(MatchRegexp("(?m)^E"), "an error that isExpected recognises must not be logged as an error")
	g.Expect(c.queue.NumRequeues(key)).To(Equal(2), "after an expected error, the sync must be retried, as after any other error")
	g.Expect([]uint64{syncs(g, resultRetry), syncs(g, resultError)}).To(Equal([]uint64{retries + 1, failures}),
		"an error that isExpected recognises must count as resultRetry, and sync must wrap it with %%w")

	stopping, stop := context.WithCancel(ctx)
	c.foos = brokenLister{err: errors.New("cancelled"), meanwhile: stop}
	c.processNext(stopping)
	g.Expect(logged.String()).NotTo(MatchRegexp("(?m)^E"), "once the context has ended, an error of the sync must not be logged as an error")
	g.Expect([]uint64{syncs(g, resultRetry), syncs(g, resultError)}).To(Equal([]uint64{retries + 2, failures}),
		"once the context has ended, an error of the sync must count as resultRetry")

	c.foos = working
	g.Expect(c.processNext(t.Context())).To(BeTrue(), "the key must come back, and a Foo that is gone is no failure")
	g.Expect(c.queue.NumRequeues(key)).To(BeZero(), "after a success, the queue must forget the failures")
	g.Expect(syncs(g, resultSuccess)).To(Equal(successes+1), "observeSync must measure each sync, with its result")
	c.queue.Add(key)
	g.Expect(c.queue.Len()).To(Equal(1), "a worker must tell the queue when it is done with a key: until then no other worker gets it")

	ended, end := context.WithCancel(t.Context())
	end()
	c.processNext(ended)
	g.Expect(syncs(g, resultSuccess)).To(Equal(successes+1), "a worker whose context has ended must not sync the key that it has taken, because another replica may already be working on it")
	c.queue.Add(key)
	g.Expect(c.queue.Len()).To(Equal(1), "a worker whose context has ended must tell the queue that it is done, too")

	c.queue.ShutDown()
	g.Expect(c.processNext(t.Context())).To(BeTrue(), "keys that are already queued must still be synced")
	g.Expect(c.processNext(t.Context())).To(BeFalse(), "a worker must end when the queue is shut down and empty")
}

// syncs returns how many syncs with this result were measured.
func syncs(g Gomega, result string) uint64 {
	families, err := legacyregistry.DefaultGatherer.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != syncDuration.FQName() {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == result {
				return metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return 0
}

func TestWorkStops(t *testing.T) {
	for name, loses := range map[string]bool{"at the signal": false, "when the Lease is lost": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHandlers(t)
			c.workers, c.drain = 2, time.Minute
			recorder := &events.FakeRecorder{}
			ctx, signal := context.WithCancel(t.Context())
			leading, lose := context.WithCancel(t.Context())
			defer signal()
			defer lose()
			c.queue.Add(cache.NewObjectName("shop", "gone"))
			ended := make(chan error, 1)
			go func() { ended <- c.work(ctx, leading, recorder) }()
			g.Eventually(c.queue.Len).Should(BeZero(), "a worker must take the key")
			g.Consistently(ended, 100*time.Millisecond).ShouldNot(Receive(), "workers must wait for more keys")
			if loses {
				lose()
			} else {
				signal()
			}
			g.Eventually(ended).Should(Receive(BeNil()))
			g.Expect(c.queue.ShuttingDown()).To(BeTrue())
			g.Expect(c.recorder).To(BeIdenticalTo(recorder))
		})
	}
}

func TestWorkersShareTheQueue(t *testing.T) {
	g := NewWithT(t)
	c := newHandlers(t)
	c.workers, c.drain = 2, time.Minute
	foos := heldLister{asked: make(chan string, 2), proceed: make(chan struct{})}
	c.foos = foos
	ctx, signal := context.WithCancel(t.Context())
	c.queue.Add(cache.NewObjectName("shop", "first"))
	c.queue.Add(cache.NewObjectName("shop", "second"))
	ended := make(chan error, 1)
	go func() { ended <- c.work(ctx, t.Context(), &events.FakeRecorder{}) }()
	g.Eventually(func() int { return len(foos.asked) }).Should(Equal(2),
		"while one worker syncs the first key, another must take the second, see work in controller.go")
	close(foos.proceed)
	signal()
	g.Eventually(ended).Should(Receive(BeNil()))
}

// heldLister is an empty cache. It reports which Foo it is asked for, and answers once proceed is closed.
type heldLister struct {
	listers.FooLister
	asked   chan string
	proceed chan struct{}
}

func (l heldLister) Foos(string) listers.FooNamespaceLister { return heldNamespaceLister{held: l} }

type heldNamespaceLister struct {
	listers.FooNamespaceLister
	held heldLister
}

func (l heldNamespaceLister) Get(name string) (*examplev1alpha1.Foo, error) {
	l.held.asked <- name
	<-l.held.proceed
	return nil, apierrors.NewNotFound(examplev1alpha1.Resource("foos"), name)
}

func TestWorkersAtTheEnd(t *testing.T) {
	for name, loses := range map[string]bool{"they finish the queued keys at the signal": false, "they leave the queued keys when the Lease is lost": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHandlers(t)
			c.workers, c.drain = 1, time.Minute
			foos := heldLister{asked: make(chan string, 2), proceed: make(chan struct{})}
			c.foos = foos
			ctx, signal := context.WithCancel(t.Context())
			leading, lose := context.WithCancel(t.Context())
			defer signal()
			defer lose()
			c.queue.Add(cache.NewObjectName("shop", "first"))
			c.queue.Add(cache.NewObjectName("shop", "second"))
			ended := make(chan error, 1)
			go func() { ended <- c.work(ctx, leading, &events.FakeRecorder{}) }()
			g.Eventually(foos.asked).Should(Receive(Equal("first")), "a worker must take the first key")
			if loses {
				lose()
			} else {
				signal()
			}
			g.Eventually(c.queue.ShuttingDown).Should(BeTrue(), "the end of either context must end the work, see work in controller.go")
			close(foos.proceed)
			g.Eventually(ended).Should(Receive(BeNil()))
			if loses {
				g.Expect(foos.asked).NotTo(Receive(), "another replica may already be working on this key: a worker whose context has ended must not sync it, see processNext in controller.go")
				return
			}
			g.Expect(foos.asked).To(Receive(Equal("second")), "the signal must not end the context of the workers: give them leading, see work in controller.go")
		})
	}
}
