package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/testcluster"
)

// Held describes pods in a trial's namespace that can't become ready.
type Held struct {
	// Waits reports whether a pod has reached the state in which it stays until Release.
	Waits func(*corev1.Pod) bool
	// Release lets these pods, and all later ones, become ready.
	Release func(context.Context) error
	// End removes the admission policy that changes the pods and, if the nodes got a label, that label.
	End func() error
}

// Unschedule gives every new pod in the trial's namespace a node selector that matches no node.
func (t *Trial) Unschedule(ctx context.Context) (Held, error) {
	label := "operatortest.example.com/" + t.Namespace
	unmark, err := t.markPods(ctx, "/spec/nodeSelector", label, func(pod *corev1.Pod) bool { return pod.Spec.NodeSelector[label] != "" })
	return Held{
		Waits: func(*corev1.Pod) bool { return true },
		Release: func(ctx context.Context) error {
			return t.labelNodes(ctx, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, label))
		},
		End: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), testcluster.NamespaceTimeout)
			defer cancel()
			return errors.Join(unmark(ctx), t.labelNodes(ctx, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label)))
		},
	}, err
}

// FailPulls makes image pulls fail for every new pod in the trial's namespace. The pods must be simulated.
func (t *Trial) FailPulls(ctx context.Context) (Held, error) {
	marked := func(pod *corev1.Pod) bool { return pod.Annotations[testcluster.UnpullableAnnotation] != "" }
	unmark, err := t.markPods(ctx, "/metadata/annotations", testcluster.UnpullableAnnotation, marked)
	return Held{
		Waits: func(pod *corev1.Pod) bool {
			statuses := pod.Status.ContainerStatuses
			return len(statuses) > 0 && statuses[0].State.Waiting != nil
		},
		Release: func(ctx context.Context) error {
			if err := unmark(ctx); err != nil {
				return err
			}
			err := t.waitProbe(ctx, func(pod *corev1.Pod) bool { return !marked(pod) })
			if err != nil {
				return fmt.Errorf("wait until the API server no longer changes new pods: %w", err)
			}
			pods := &corev1.PodList{}
			if err := t.Cluster.Admin.List(ctx, pods, client.InNamespace(t.Namespace)); err != nil {
				return fmt.Errorf("list the pods: %w", err)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, testcluster.UnpullableAnnotation)))
			for i := range pods.Items {
				if err := client.IgnoreNotFound(t.Cluster.Admin.Patch(ctx, &pods.Items[i], patch)); err != nil {
					return fmt.Errorf("allow the pod %s to pull its images: %w", pods.Items[i].Name, err)
				}
			}
			return nil
		},
		End: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), testcluster.NamespaceTimeout)
			defer cancel()
			return unmark(ctx)
		},
	}, err
}

// markPods makes the API server add a key with the value "true" to a map of every new pod in the trial's namespace. It
// returns once that has taken effect. Even if it fails, it returns the function that undoes this.
func (t *Trial) markPods(ctx context.Context, path, key string, marked func(*corev1.Pod) bool) (unmark func(context.Context) error, err error) {
	t.last = nil
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
				// A node selector is atomic, so an apply configuration can't add to it.
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`has(object%[1]s)
					? [JSONPatch{op: "add", path: %[2]q + "/" + jsonpatch.escapeKey(%[3]q), value: "true"}]
					: [JSONPatch{op: "add", path: %[2]q, value: {%[3]q: "true"}}]`, strings.ReplaceAll(path, "/", "."), path, key)},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	unmark = func(ctx context.Context) error {
		return errors.Join(client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, binding)), client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, policy)))
	}
	for _, object := range []client.Object{policy, binding} {
		if err := t.Cluster.Admin.Create(ctx, object); err != nil {
			return unmark, fmt.Errorf("make the API server change new pods: %w", err)
		}
	}
	if err := t.waitProbe(ctx, marked); err != nil {
		return unmark, fmt.Errorf("wait until the API server changes new pods: %w", err)
	}
	return unmark, nil
}

// waitProbe waits until a new pod meets a condition: that the API server marks it, or no longer does.
func (t *Trial) waitProbe(ctx context.Context, as func(*corev1.Pod) bool) error {
	ctx, cancel := context.WithTimeout(ctx, testcluster.NamespaceTimeout)
	defer cancel()
	last := errors.New("dry runs of new pods show no effect yet")
	err := wait.PollUntilContextCancel(ctx, testcluster.PollInterval, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
		}
		// The pod is refused until the namespace's service account exists.
		if err := t.Cluster.Admin.Create(ctx, probe, client.DryRunAll); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		return as(probe), nil
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
