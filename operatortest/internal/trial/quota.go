package trial

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/testcluster"
)

// QuotaName is the name of the kit's quota. The API server's message contains it when the quota refuses an object.
const QuotaName = "operatortest-nothing-more"

// probed is a resource that operators normally don't create. A dry run shows when the quota refuses limit ranges, and
// therefore also objects of the other resources that the quota counts.
const probed = "limitranges"

// Forbid creates a quota that refuses every further object of some kinds in the trial's namespace (403, exceeded
// quota). It returns once the quota has taken effect, with a function that lifts it.
func (t *Trial) Forbid(ctx context.Context, kinds ...schema.GroupVersionKind) (lift func(context.Context) error, err error) {
	t.last = nil
	none := resource.MustParse("0")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: QuotaName},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/" + probed: none}},
	}
	for _, kind := range kinds {
		mapping, err := t.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
		}
		quota.Spec.Hard[corev1.ResourceName("count/"+mapping.Resource.GroupResource().String())] = none
	}
	if err := t.Cluster.Admin.Create(ctx, quota); err != nil {
		return nil, fmt.Errorf("create a quota: %w", err)
	}
	if err := t.waitProbeRefused(ctx); err != nil {
		return nil, fmt.Errorf("wait until the API server acts on a quota (its admission plugin ResourceQuota must be on): %w", err)
	}
	return func(ctx context.Context) error {
		if err := t.Cluster.Admin.Delete(ctx, quota); err != nil {
			return fmt.Errorf("lift the quota: %w", err)
		}
		return nil
	}, nil
}

// waitProbeRefused waits until the API server forbids the kit to create an object in the namespace, or until the
// namespace is gone.
func (t *Trial) waitProbeRefused(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testcluster.NamespaceTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, testcluster.PollInterval, true, func(ctx context.Context) (bool, error) {
		err := t.Cluster.Admin.Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: "probe"}}, client.DryRunAll)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // the namespace may be gone
			return true, nil
		}
		return false, err
	})
}
