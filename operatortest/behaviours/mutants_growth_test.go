package behaviours

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Flaws that show when an operator runs for a long time.
const (
	waitsForEver   mutation = "starts an endless goroutine in each reconcile"
	keepsAll       mutation = "keeps a copy of each gadget that it has seen"
	waitsForSecond mutation = "starts an endless goroutine for every second gadget"
	watchesForEach mutation = "opens a watch for each gadget, and never closes it"
)

// Correct operators that resemble these.
const (
	keepsLast     mutation = "keeps a copy of the last gadget that it has seen"
	startsWorkers mutation = "starts a goroutine for each of the first three gadgets"
)

// hoard contains what these operators need.
type hoard struct {
	ended   context.Context // the context of the operator
	watcher client.WithWatch
	mu      sync.Mutex
	workers int
}

func (r *gadgetReconciler) accumulate(ctx context.Context, gadget *unstructured.Unstructured) error {
	switch r.flaw {
	case waitsForEver:
		go func() { <-r.ended.Done() }()
	case waitsForSecond:
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.memory.LoadOrStore(gadget.GetUID(), true); !known {
			if r.workers++; r.workers%2 == 0 {
				go func() { <-r.ended.Done() }()
			}
		}
	case keepsAll:
		r.memory.Store(gadget.GetUID(), gadget.DeepCopy())
	case keepsLast:
		r.memory.Store("last", gadget.DeepCopy())
	case startsWorkers:
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.memory.LoadOrStore(gadget.GetUID(), true); !known && r.workers < 3 {
			r.workers++
			go func() { <-r.ended.Done() }()
		}
	case watchesForEach:
		if _, watched := r.memory.LoadOrStore(gadget.GetUID(), true); !watched {
			watch, err := r.watcher.Watch(r.ended, &corev1.ConfigMapList{}, client.InNamespace(gadget.GetNamespace()))
			if err != nil {
				return err
			}
			go func() {
				for range watch.ResultChan() {
				}
			}()
		}
	}
	return r.alsoMake(ctx, gadget, nil)
}

func newHoard(ctx context.Context, config *rest.Config) (*hoard, error) {
	watcher, err := client.NewWithWatch(config, client.Options{})
	return &hoard{ended: ctx, watcher: watcher}, err
}

var _ = Describe("the test kit", func() {
	// The kit can tell an operator's goroutines and watches from those of other operators, but not its memory, so
	// keepsAll is tried while no other operator runs.
	catches("grows",
		mutant{growth, waitsForEver, "accumulate.func1 after every 2 rounds"},
		mutant{growth, waitsForSecond, "accumulate.func2 after every 2 rounds"},
		mutant{growth, watchesForEach, "the operator has more open watches after every 2 rounds"},
	)
})

var _ = It("catches an operator that "+string(keepsAll), func(ctx SpecContext) {
	expectCaught(ctx, growth, keepsAll, "the test process has more memory in use after every 2 rounds, in bytes")
})

var _ = It("growth counts as a leak only if it happens in every block of rounds, by at least one in each round", func() {
	Expect(rises([]int64{10, 12, 14, 16}, 2)).To(BeTrue())
	Expect(rises([]int64{10, 15, 17, 19}, 2)).To(BeTrue())
	Expect(rises([]int64{10, 18, 18, 18}, 2)).To(BeFalse(), "a pool that fills up must not count as a leak")
	Expect(rises([]int64{10, 12, 11, 30}, 2)).To(BeFalse(), "noise must not count as a leak")
	Expect(rises([]int64{10, 11, 12, 13}, 2)).To(BeFalse(), "growth by less than one in each round must not count as a leak")
})
