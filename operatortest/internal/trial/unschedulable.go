package trial

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/testcluster"
)

// Unschedule gives every new pod in the trial's namespace a selector that fits no node. It returns once the API server does that, with a
// function that makes the nodes fit. end takes everything back.
func (t *Trial) Unschedule(ctx context.Context) (fit func(context.Context) error, end func() error, err error) {
	t.last = nil
	label := "operatortest.example.com/" + t.Namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "operatortest-" + t.Namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: t.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			FailurePolicy:      new(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				// The map is atomic, so an apply configuration can't add to it.
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`has(object.spec.nodeSelector)
					? [JSONPatch{op: "add", path: "/spec/nodeSelector/" + jsonpatch.escapeKey(%[1]q), value: "true"}]
					: [JSONPatch{op: "add", path: "/spec/nodeSelector", value: {%[1]q: "true"}}]`, label)},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	end = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), testcluster.NamespaceTimeout)
		defer cancel()
		return errors.Join(client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, binding)), client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, policy)),
			t.labelNodes(ctx, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label)))
	}
	for _, object := range []client.Object{policy, binding} {
		if err := t.Cluster.Admin.Create(ctx, object); err != nil {
			return nil, end, fmt.Errorf("have the API server select nodes for pods: %w", err)
		}
	}
	if err := t.waitSelected(ctx, label); err != nil {
		return nil, end, fmt.Errorf("wait until the API server selects nodes for pods: %w", err)
	}
	fit = func(ctx context.Context) error {
		return t.labelNodes(ctx, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, label))
	}
	return fit, end, nil
}

// waitSelected waits until a new pod gets the selector.
func (t *Trial) waitSelected(ctx context.Context, label string) error {
	ctx, cancel := context.WithTimeout(ctx, testcluster.NamespaceTimeout)
	defer cancel()
	last := errors.New("a new pod has no selector")
	err := wait.PollUntilContextCancel(ctx, testcluster.PollInterval, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
		}
		// It is refused as long as the namespace's service account is not there.
		if err := t.Cluster.Admin.Create(ctx, probe, client.DryRunAll); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		return probe.Spec.NodeSelector[label] != "", nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", last, err)
	}
	return nil
}

func (t *Trial) labelNodes(ctx context.Context, patch string) error {
	nodes := &corev1.NodeList{}
	if err := t.Cluster.Admin.List(ctx, nodes); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for i := range nodes.Items {
		if err := t.Cluster.Admin.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("label the node %s: %w", nodes.Items[i].Name, err)
		}
	}
	return nil
}
