package behaviours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

const (
	// perRound is how many resources are created and deleted in a round, in parallel.
	perRound = 2
	// warmUp is how many rounds don't count, while pools and caches fill.
	warmUp = 2
	// blocks is how many measurements follow the one at the end of the warm-up, with blockRounds rounds before each.
	//
	// Goroutines, watches, threads and files are counted exactly, and at rest. A leak of one in each round adds
	// blockRounds to the count in each block, so two blocks are enough to find it. More rounds would only find leaks that
	// don't happen in every round, and each round takes as long as the operator needs for a resource. A pool that grows
	// with the work doesn't count as a leak if the first perRound * (warmUp + blockRounds) resources fill it. Memory can't
	// be measured exactly: see ballast and processBallast.
	blocks      = 2
	blockRounds = 2
	// ballast is how many spaces pad an annotation on each resource, so that a leaked copy shows in the memory of this
	// process. The API server allows 256 KiB for all annotations of an object.
	ballast = 200 << 10
	// processBallast is how many bytes each resource must leave in the memory of an operator's own process to count as a
	// leak. It is the size of several copies, because the kit can't make that process collect its garbage.
	processBallast = 2 << 20
)

var growth = behaviour{
	name:    "growth",
	promise: "does not grow while it is running: no goroutine, watch or copy of a resource outlives the resource",
	advice: "what is started or stored for each resource, or in each reconcile: when a resource is gone, end its goroutines and watches, and wait for them; " +
		"delete from maps what is deleted from the cluster, or bound them; repeat work with RequeueAfter, not with a goroutine that sleeps",
	alone: true, // the memory of the whole process is measured
	check: func(ctx context.Context, runner *trial.Runner) error {
		if err := runner.WaitAllEnded(ctx); err != nil {
			return err
		}
		spec, err := runner.SecondSpec(ctx)
		if err != nil {
			return err
		}
		if err := namedApart(runner, spec); err != nil {
			return err
		}
		return runner.Try(ctx, fmt.Sprintf("two resources are created and deleted %d times", warmUp+blocks*blockRounds), func(ctx context.Context, t *trial.Trial) error {
			return tryGrowth(ctx, t, spec)
		})
	},
}

func tryGrowth(ctx context.Context, t *trial.Trial, spec map[string]any) error {
	operator := t.Start(operatortest.RunOptions{})
	var usages []trial.Usage
	for round := range warmUp + blocks*blockRounds {
		pair := []*unstructured.Unstructured{t.Resource(nil), t.Resource(spec)}
		for i, resource := range pair {
			resource.SetName(fmt.Sprintf("%s-%d", t.Sample.GetName(), perRound*round+i))
			annotations := resource.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			applied, err := padded(resource)
			if err != nil {
				return err
			}
			annotations[corev1.LastAppliedConfigAnnotation] = applied
			resource.SetAnnotations(annotations)
		}
		if err := playRound(ctx, t, pair); err != nil {
			return err
		}
		if done := round + 1 - warmUp; done < 0 || done%blockRounds != 0 {
			continue
		}
		usage, err := measure(ctx, t, operator)
		if err != nil {
			return err
		}
		usages = append(usages, usage)
	}
	// A goroutine or connection that ends a moment later is not a leak, so the last measurement is repeated.
	return t.Within(ctx, t.Operator.Timeout, fmt.Sprintf("no growth in %d blocks of %d rounds, with %d new resources in each round", blocks, blockRounds, perRound), func(ctx context.Context) error {
		usage, err := usageOf(ctx, t, operator)
		if err != nil {
			return err
		}
		usages[len(usages)-1] = usage
		return grown(usages, t.LeftOut("growth/memory"))
	})
}

// padded returns what kubectl apply records in an annotation of a resource, with spaces at the end. Operators that copy
// annotations to their children should leave this one out, because in a child's annotation kubectl apply expects the
// child's own configuration. If another annotation had that many spaces, an operator might copy it and also record
// the copy in a further annotation, and the two together would exceed the API server's limit.
func padded(resource *unstructured.Unstructured) (string, error) {
	content, err := resource.MarshalJSON()
	return string(content) + strings.Repeat(" ", ballast), err
}

// measure waits until the operator is at rest, and then returns its usage.
func measure(ctx context.Context, t *trial.Trial, operator *trial.Instance) (trial.Usage, error) {
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return trial.Usage{}, err
	}
	return usageOf(ctx, t, operator)
}

// usageOf returns the operator's usage. If an operator's own process can't be measured, usageOf counts only the open
// watches, and a remark gives the reason.
func usageOf(ctx context.Context, t *trial.Trial, operator *trial.Instance) (trial.Usage, error) {
	usage, err := operator.Usage(ctx)
	if operator.IsProcess() && err != nil && ctx.Err() == nil {
		t.Remark = "only open watches are counted: " + err.Error()
		return usage, nil
	}
	return usage, err
}

// playRound creates two resources, waits until both have converged, deletes them, and waits until both are gone.
func playRound(ctx context.Context, t *trial.Trial, pair []*unstructured.Unstructured) error {
	if err := errors.Join(t.Create(ctx, pair[0]), t.Create(ctx, pair[1])); err != nil {
		return err
	}
	for _, resource := range pair {
		if err := t.Converge(ctx, resource); err != nil {
			return err
		}
	}
	if err := errors.Join(t.Delete(ctx, pair[0]), t.Delete(ctx, pair[1])); err != nil {
		return err
	}
	for _, resource := range pair {
		if err := t.WaitGone(ctx, resource, "it was created and deleted"); err != nil {
			return err
		}
	}
	return nil
}

// grown returns an error if something grew in each block of rounds, by at least as much as a leak in each round would
// add. If memoryLeftOut is true, memory may grow.
func grown(usages []trial.Usage, memoryLeftOut bool) error {
	count := func(of func(trial.Usage) int64) (counts []int64) {
		for _, usage := range usages {
			counts = append(counts, of(usage))
		}
		return counts
	}
	rounds := fmt.Sprintf("after every %d rounds", blockRounds)
	if counts := count(func(u trial.Usage) int64 { return int64(u.Watches) }); rises(counts, blockRounds) {
		return fmt.Errorf("the operator has more open watches %s: %d", rounds, counts)
	}
	if counts := count(func(u trial.Usage) int64 { return int64(u.Processes.Threads) }); rises(counts, blockRounds) {
		return fmt.Errorf("the operator has more threads or processes %s: %d", rounds, counts)
	}
	if counts := count(func(u trial.Usage) int64 { return int64(u.Processes.Files) }); rises(counts, blockRounds) {
		return fmt.Errorf("the operator has more open files or connections %s: %d", rounds, counts)
	}
	for entry, stack := range usages[len(usages)-1].Stacks {
		if counts := count(func(u trial.Usage) int64 { return int64(u.Goroutines[entry]) }); rises(counts, blockRounds) {
			return fmt.Errorf("the operator has more goroutines of %s %s: %d. One of them:\n%s", entry, rounds, counts, stack)
		}
	}
	if memoryLeftOut {
		return nil
	}
	if counts := count(func(u trial.Usage) int64 { return u.Processes.Memory }); rises(counts, blockRounds*perRound*processBallast) {
		return fmt.Errorf("the operator has more memory in use %s, in bytes: %d. Each of %d resources a round has an annotation of more than %d bytes", rounds, counts, perRound, ballast)
	}
	// A copy may be smaller than the resource, and other memory may have been freed in the meantime.
	if counts := count(func(u trial.Usage) int64 { return u.Heap }); rises(counts, blockRounds*perRound*ballast*3/5) {
		return fmt.Errorf("the test process has more memory in use %s, in bytes: %d. "+
			"Each of %d resources a round has an annotation of more than %d bytes, and copies of them probably remain, in the operator or in this suite", rounds, counts, perRound, ballast)
	}
	return nil
}

// rises reports whether counts grow at every step, by at least the given amount.
func rises(counts []int64, each int64) bool {
	for i := 1; i < len(counts); i++ {
		if counts[i]-counts[i-1] < each {
			return false
		}
	}
	return true
}
