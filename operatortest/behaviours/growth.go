package behaviours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

const (
	// growthRounds is how many times two resources are created and deleted.
	growthRounds = 5
	// warmUp is how many rounds don't count, while pools and caches fill.
	warmUp = 2
	// perRound is how many resources there are in each round.
	perRound = 2
	// ballast is the size in bytes of an annotation on each resource, so that a copy that is kept shows in the
	// process's memory. The API server allows 256 KiB for all annotations.
	ballast = 200 << 10
)

// ballastAnnotation is on each resource.
const ballastAnnotation = "operatortest.example.com/ballast"

var growth = behaviour{
	name:    "growth",
	promise: "does not grow while it runs: no goroutine, watch or copy of a resource outlives the resource",
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
		return runner.Try(ctx, fmt.Sprintf("%d times two resources are created and deleted", growthRounds), func(ctx context.Context, t *trial.Trial) error {
			return tryGrowth(ctx, t, spec)
		})
	},
}

func tryGrowth(ctx context.Context, t *trial.Trial, spec map[string]any) error {
	operator := t.Start(operatortest.RunOptions{})
	var usages []trial.Usage
	for round := range growthRounds {
		pair := []*unstructured.Unstructured{t.Resource(nil), t.Resource(spec)}
		for i, resource := range pair {
			resource.SetName(fmt.Sprintf("%s-%d", t.Sample.GetName(), perRound*round+i))
			annotations := resource.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[ballastAnnotation] = strings.Repeat(fmt.Sprint(i), ballast)
			resource.SetAnnotations(annotations)
		}
		if err := playRound(ctx, t, operator, pair); err != nil {
			return err
		}
		usage, err := operator.Usage()
		if err != nil {
			return err
		}
		usages = append(usages, usage)
	}
	if operator.IsProcess() {
		t.Remark = "only the open watches of a process are counted: its threads and memory grow and shrink even without a leak"
	}
	// What ends a moment later is not a leak, so the last measurement is repeated.
	return t.Eventually(ctx, fmt.Sprintf("no growth from round %d to round %d, with %d new resources in each", warmUp, growthRounds, perRound), func(context.Context) error {
		usage, err := operator.Usage()
		if err != nil {
			return err
		}
		usages[len(usages)-1] = usage
		return grown(usages[warmUp-1:], t.LeftOut("growth/memory"))
	})
}

// playRound plays the lives of two resources in parallel.
func playRound(ctx context.Context, t *trial.Trial, operator *trial.Instance, pair []*unstructured.Unstructured) error {
	if err := errors.Join(t.Create(ctx, pair[0]), t.Create(ctx, pair[1])); err != nil {
		return err
	}
	if err := errors.Join(t.Converge(ctx, pair[0]), t.Converge(ctx, pair[1])); err != nil {
		return err
	}
	if err := errors.Join(t.Delete(ctx, pair[0]), t.Delete(ctx, pair[1])); err != nil {
		return err
	}
	if err := errors.Join(t.WaitGone(ctx, pair[0], "it was created and deleted"), t.WaitGone(ctx, pair[1], "it was created and deleted")); err != nil {
		return err
	}
	return t.WaitAtRest(ctx, operator)
}

// grown returns an error if something grew from each round to the next, by as much as a round's resources would make
// it.
func grown(usages []trial.Usage, memoryLeftOut bool) error {
	count := func(of func(trial.Usage) int64) (counts []int64) {
		for _, usage := range usages {
			counts = append(counts, of(usage))
		}
		return counts
	}
	if counts := count(func(u trial.Usage) int64 { return int64(u.Watches) }); rises(counts, perRound) {
		return fmt.Errorf("the operator has more open watches after each round: %d", counts)
	}
	for entry, stack := range usages[len(usages)-1].Stacks {
		if counts := count(func(u trial.Usage) int64 { return int64(u.Goroutines[entry]) }); rises(counts, perRound) {
			return fmt.Errorf("the operator has more goroutines of %s after each round: %d. One of them:\n%s", entry, counts, stack)
		}
	}
	// A copy may be a little smaller than the resource, and the kit's own records grow a little.
	if counts := count(func(u trial.Usage) int64 { return u.Heap }); !memoryLeftOut && rises(counts, perRound*ballast*4/5) {
		return fmt.Errorf("the process has more memory in use after each round, in bytes: %d. "+
			"Each of %d resources a round has an annotation of %d bytes, and copies of them remain, in the operator or in this suite", counts, perRound, ballast)
	}
	return nil
}

// rises reports whether counts grow in every round, and by at least the given amount on average.
func rises(counts []int64, each int64) bool {
	for i := 1; i < len(counts); i++ {
		if counts[i]-counts[i-1] < (each+1)/2 {
			return false
		}
	}
	return counts[len(counts)-1]-counts[0] >= each*int64(len(counts)-1)
}
