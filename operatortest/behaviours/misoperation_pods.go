package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// podsRefused creates the sample while a quota refuses all pods, and then removes the quota.
func podsRefused(ctx context.Context, t *trial.Trial) error {
	wanted, err := t.Fresh(ctx, nil)
	if err != nil {
		return err
	}
	lift, err := t.Forbid(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return err
	}
	operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(nil)
	if err := t.Create(ctx, resource); err != nil {
		return err
	}
	refused := func(event eventsv1.Event) bool { return strings.Contains(event.Note, trial.QuotaName) }
	err = t.Within(ctx, t.Operator.Timeout, "a quota to refuse a pod, or the spec to be met without pods", func(ctx context.Context) error {
		if warned, err := hasWarning(ctx, t, t.Namespace, refused); warned || err != nil {
			return err
		}
		return isMet(ctx, t, resource)
	})
	if err != nil {
		return err
	}
	met, err := unmet(ctx, t, operator, resource)
	if err != nil {
		return fmt.Errorf("a quota refuses all pods: %w", err)
	}
	if met {
		t.NotTried = "not affected: the spec is met without pods"
	}
	if err := lift(ctx); err != nil {
		return err
	}
	return t.ConvergeTo(ctx, resource, wanted, "the operator to converge once the quota is gone")
}

// isMet returns an error unless the status says that the spec is met, and it is. It leaves the resource as it is, because
// unmet compares a later status with the resource's.
func isMet(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured) error {
	now := resource.DeepCopy()
	return errors.Join(t.Get(ctx, now), t.Met(now), t.Complete(ctx, now))
}

// podsHeld returns an experiment that creates the sample while its pods can't become ready. Unlike pods that a quota
// refuses, these exist.
func podsHeld(hold func(*trial.Trial, context.Context) (trial.Held, error), problem, solved string) func(context.Context, *trial.Trial) error {
	return func(ctx context.Context, t *trial.Trial) (err error) {
		wanted, err := t.Fresh(ctx, nil)
		if err != nil {
			return err
		}
		held, err := hold(t, ctx)
		defer func() { err = errors.Join(err, held.End()) }()
		if err != nil {
			return err
		}
		operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(nil)
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		err = t.Within(ctx, t.Operator.Timeout, "a pod to exist, or the spec to be met without pods", func(ctx context.Context) error {
			pods := &corev1.PodList{}
			if err := t.Cluster.Admin.List(ctx, pods, client.InNamespace(t.Namespace)); err != nil {
				return err
			}
			if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return held.Waits(&pod) }) {
				return nil
			}
			return isMet(ctx, t, resource)
		})
		if err != nil {
			return err
		}
		met, err := unmet(ctx, t, operator, resource)
		if err != nil {
			return fmt.Errorf("%s: %w", problem, err)
		}
		if met {
			t.NotTried = "not affected: the spec is met without running pods"
		}
		if err := held.Release(ctx); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, wanted, "the operator to converge once "+solved)
	}
}
