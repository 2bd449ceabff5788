package behaviours

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var converges = behaviour{
	name:    "converges",
	promise: "brings a new resource to the state that its spec asks for, and reports it in the status",
	advice: "the status: a condition with observedGeneration set to metadata.generation, written once the children exist and, if they run pods, are available; " +
		"then the children: their names, and a controller reference with the resource's UID; if a create gets a 403 although the role allows it: " +
		"an owner reference with blockOwnerDeletion, which SetControllerReference sets, needs permission to update the owner's finalizers",
	check: func(ctx context.Context, runner *trial.Runner) error {
		samples, err := samplesOfKind(runner)
		if err != nil {
			return err
		}
		return trial.Each(ctx, len(samples), func(ctx context.Context, i int) error {
			return runner.Try(ctx, "sample "+samples[i].GetName(), func(ctx context.Context, t *trial.Trial) error {
				defer t.Follow()()
				resource := samples[i].DeepCopy()
				if _, err := t.Establish(ctx, t.Start(operatortest.RunOptions{}), resource); err != nil {
					return err
				}
				if !runner.LeftOut(trial.Claims) {
					if err := t.CheckClaim(ctx, resource); err != nil {
						return err
					}
				}
				if runner.LeftOut("converges/observedGeneration") {
					return nil
				}
				return t.CheckObserved(resource)
			})
		})
	},
}

// samplesOfKind returns the objects in Operator.Samples that are of the sample's kind, or an error if there are none.
// If Operator.Samples is empty, it returns only the sample.
func samplesOfKind(runner *trial.Runner) ([]*unstructured.Unstructured, error) {
	if runner.Operator.Samples == "" {
		return []*unstructured.Unstructured{runner.Resource(nil)}, nil
	}
	files, err := manifest.Files(runner.Operator.Samples)
	if err != nil {
		return nil, err
	}
	var samples []*unstructured.Unstructured
	for _, file := range files {
		objects, err := manifest.Read(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if object.GroupVersionKind() == runner.Sample.GroupVersionKind() {
				samples = append(samples, object)
			}
		}
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s contains no %s: there is nothing to try", runner.Operator.Samples, runner.Sample.GetKind())
	}
	return samples, nil
}
