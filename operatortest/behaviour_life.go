package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/traffic"
)

var converges = behaviour{
	name:    "converges",
	promise: "brings a new resource to the state that its spec asks for, and says so in the status",
	advice: "the status: a condition with observedGeneration set to metadata.generation, written after the children are there; " +
		"then the children: their names, and a controller reference with the resource's UID",
	check: func(ctx context.Context, lab *lab) error {
		samples, err := lab.samples()
		if err != nil {
			return err
		}
		return each(ctx, len(samples), func(ctx context.Context, i int) error {
			return lab.try(ctx, func(ctx context.Context, trial *trial) error {
				_, err := trial.settle(ctx, trial.start(RunOptions{}), samples[i].DeepCopy())
				return err
			})
		})
	},
}

// samples are the objects of the operator's kind in all sample files. It is an error if there are none.
func (l *lab) samples() ([]*unstructured.Unstructured, error) {
	files, err := sampleFiles(l.operator.Samples)
	if err != nil {
		return nil, err
	}
	var samples []*unstructured.Unstructured
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if object.GroupVersionKind() == l.sample.GroupVersionKind() {
				samples = append(samples, object)
			}
		}
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s has no %s: there is nothing to try", l.operator.Samples, l.sample.GetKind())
	}
	return samples, nil
}

var frugal = behaviour{
	name:    "frugal",
	promise: "writes no more than it must to converge",
	advice: "the number of writes in one reconcile: compute the whole status first and write it once at the end; " +
		"don't write a child again that was just created",
	check: func(ctx context.Context, lab *lab) error {
		return lab.try(ctx, func(ctx context.Context, trial *trial) error {
			operator := trial.start(RunOptions{})
			if _, err := trial.settle(ctx, operator, lab.resource(nil)); err != nil {
				return err
			}
			var writes []traffic.Request
			for _, request := range operator.writes() {
				if !request.IsEvent() && request.Status < http.StatusBadRequest {
					writes = append(writes, request)
				}
			}
			if len(writes) > lab.operator.MaxWrites {
				return fmt.Errorf("expected at most %d write requests with effect for a new resource, events aside\nfound %d:\n%s",
					lab.operator.MaxWrites, len(writes), lines(writes))
			}
			return nil
		})
	},
}

func lines(requests []traffic.Request) string {
	text := &strings.Builder{}
	for _, request := range requests {
		fmt.Fprintln(text, request)
	}
	return strings.TrimRight(text.String(), "\n")
}

var deletion = behaviour{
	name:    "deletion",
	promise: "lets go of a deleted resource, and leaves nothing of it behind",
	advice: "the deletion branch: it runs before the finalizer is added, may run twice, and takes the finalizer off last; " +
		"children without an owner reference are not garbage-collected",
	check: func(ctx context.Context, lab *lab) error {
		cases := []func(context.Context, *trial) error{deleteRunning, deleteWhileDown}
		if lab.operator.External != nil {
			cases = append(cases, deleteDuringOutage)
		}
		return each(ctx, len(cases), func(ctx context.Context, i int) error { return lab.try(ctx, cases[i]) })
	},
}

func deleteRunning(ctx context.Context, trial *trial) error {
	resource := trial.resource(nil)
	if _, err := trial.settle(ctx, trial.start(RunOptions{}), resource); err != nil {
		return err
	}
	return errors.Join(trial.remove(ctx, resource), trial.gone(ctx, resource, "the operator runs all the time"))
}

// deleteWhileDown deletes when no operator runs: a new one finds the resource on its way out, or gone.
func deleteWhileDown(ctx context.Context, trial *trial) error {
	resource := trial.resource(nil)
	operator := trial.start(RunOptions{})
	if _, err := trial.settle(ctx, operator, resource); err != nil {
		return err
	}
	if err := operator.stop(); err != nil {
		return err
	}
	if err := trial.remove(ctx, resource); err != nil {
		return err
	}
	trial.start(RunOptions{})
	return trial.gone(ctx, resource, "the operator was down when the resource was deleted, and came back")
}

// deleteDuringOutage deletes while the world outside can't be reached.
func deleteDuringOutage(ctx context.Context, trial *trial) error {
	resource := trial.resource(nil)
	if _, err := trial.settle(ctx, trial.start(RunOptions{}), resource); err != nil {
		return err
	}
	restore := trial.operator.External.Fail(trial.namespace)
	defer restore()
	if err := trial.remove(ctx, resource); err != nil {
		return err
	}
	exists := func(ctx context.Context) error { return trial.reread(ctx, resource) }
	if err := trial.throughout(ctx, watched, "the resource to wait until the world outside is clean", exists); err != nil {
		return err
	}
	restore()
	return trial.gone(ctx, resource, "the world outside could not be reached for a while")
}

// gone waits until nothing is left of a deleted resource.
func (t *trial) gone(ctx context.Context, resource *unstructured.Unstructured, circumstances string) error {
	return t.eventually(ctx, "the resource, its children and all they stand for to be gone; "+circumstances, func(ctx context.Context) error {
		left := resource.DeepCopy()
		err := t.cluster.admin.Get(ctx, client.ObjectKeyFromObject(resource), left)
		if err == nil {
			return fmt.Errorf("%s %s is still there, held by its finalizers %q", left.GetKind(), left.GetName(), left.GetFinalizers())
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get %s: %w", resource.GetName(), err)
		}
		found, err := t.state(ctx)
		if err != nil {
			return err
		}
		if external, kept := found[outside]; kept && external == "" {
			delete(found, outside)
		}
		if difference := found.difference(state{}); difference != "" {
			return fmt.Errorf("left behind:\n%s", difference)
		}
		return nil
	})
}
