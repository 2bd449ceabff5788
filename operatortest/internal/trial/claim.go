package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// Claims is the part of the behaviour "converges" that checks whether the status was true when it first said that the
// spec is met.
const Claims = "converges/order"

// Follow keeps every version of the trial's resources and children, until the returned function is called.
func (t *Trial) Follow() (end func()) {
	t.store.follow(t.Namespace)
	return func() { t.store.unfollow(t.Namespace) }
}

// versions returns the versions of the operator's resources and children seen since [Trial.Follow]. The caller must not
// change them. The cluster's store may also contain other operators' kinds.
func (t *Trial) versions() []version {
	kinds := append(t.ChildKinds(), t.Sample.GroupVersionKind())
	return slices.DeleteFunc(t.store.versions(t.Namespace), func(seen version) bool { return !slices.Contains(kinds, seen.GroupVersionKind()) })
}

// FirstVersion returns a copy of the first matching version of a resource since [Trial.Follow], or nil if there is none.
func (t *Trial) FirstVersion(uid types.UID, matches func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	for _, version := range t.versions() {
		if seen := version.DeepCopy(); seen.GetUID() == uid && matches(seen) {
			return seen
		}
	}
	return nil
}

// CheckClaim returns an error if a new resource's status said that the spec was met before it was. The final
// state alone would not show that. Follow must have been called before the resource was created.
//
// CheckClaim takes the first version that makes this claim, and looks up what the API server stored at that moment: all
// kinds share etcd's revisions, and a list can ask for an earlier one. The children of a new resource were no closer to
// being ready at any earlier time, so a stale cache can't be the reason for a false claim.
func (t *Trial) CheckClaim(ctx context.Context, resource *unstructured.Unstructured) error {
	claim := t.FirstVersion(resource.GetUID(), func(version *unstructured.Unstructured) bool { return t.Met(version) == nil })
	if claim == nil {
		return errors.New("expected the watch to have shown a version of the resource whose status says that its spec is met\nfound none")
	}
	for _, declared := range t.Operator.Children {
		if err := t.heldThen(ctx, declared, claim); err != nil {
			return fmt.Errorf("expected the first status that says that the spec is met to be true when it was written\nfound, at resourceVersion %s: %w",
				claim.GetResourceVersion(), err)
		}
	}
	return nil
}

// heldThen returns an error unless a declared child existed, and was available, when a version of the resource was
// written. If the resource, as it was then, should have no such child, heldThen returns nil.
func (t *Trial) heldThen(ctx context.Context, declared operatortest.Child, claim *unstructured.Unstructured) error {
	name := declared.NameFor(claim)
	if name == "" {
		return nil
	}
	children := &unstructured.UnstructuredList{}
	children.SetGroupVersionKind(declared.Kind)
	if err := t.listThen(ctx, children, claim); err != nil {
		return err
	}
	if declared.Generated {
		var objects []*unstructured.Unstructured
		for i := range children.Items {
			objects = append(objects, &children.Items[i])
		}
		child, err := generatedIn(objects, declared, claim)
		if err != nil {
			return err
		}
		return t.availableThen(ctx, child, claim)
	}
	for i := range children.Items {
		if child := &children.Items[i]; child.GetName() == name {
			return t.availableThen(ctx, child, claim)
		}
	}
	return fmt.Errorf("there was no %s %s yet", declared.Kind.Kind, name)
}

// availableThen returns an error if a child should run pods, but its status reports none of them as available and none
// of them is ready. The operator decides how many are enough, and it may count the pods itself before the child's
// status does.
func (t *Trial) availableThen(ctx context.Context, child, claim *unstructured.Unstructured) error {
	wanted, available, err := podsOf(child)
	if err != nil || wanted == 0 || available > 0 {
		return err
	}
	fields, _, _ := unstructured.NestedMap(child.Object, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return fmt.Errorf("read the selector of %s %s: %w", child.GetKind(), child.GetName(), err)
	}
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return fmt.Errorf("read the selector of %s %s: %w", child.GetKind(), child.GetName(), err)
	}
	pods := &corev1.PodList{}
	if err := t.listThen(ctx, pods, claim, client.MatchingLabelsSelector{Selector: matching}); err != nil {
		return err
	}
	ready := func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	}
	if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return slices.ContainsFunc(pod.Status.Conditions, ready) }) {
		return nil
	}
	return fmt.Errorf("%s %s existed, but had no ready pod, although it wants %d", child.GetKind(), child.GetName(), wanted)
}

// podsOf returns how many pods a child should run, and how many its status reports as available or, for a StatefulSet,
// as ready. Both are zero for kinds other than Deployment and StatefulSet.
func podsOf(child *unstructured.Unstructured) (wanted, available int32, err error) {
	read := func(into any) error {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, into); err != nil {
			return fmt.Errorf("read %s %s: %w", child.GetKind(), child.GetName(), err)
		}
		return nil
	}
	switch child.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		deployment := &appsv1.Deployment{}
		err = read(deployment)
		return ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.AvailableReplicas, err
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		set := &appsv1.StatefulSet{}
		err = read(set)
		return ptr.Deref(set.Spec.Replicas, 1), max(set.Status.AvailableReplicas, set.Status.ReadyReplicas), err
	}
	return 0, 0, nil
}

// listThen lists what a trial's namespace contained when a version of the resource was written.
func (t *Trial) listThen(ctx context.Context, list client.ObjectList, claim *unstructured.Unstructured, selected ...client.ListOption) error {
	then := &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: claim.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
	err := t.Cluster.Admin.List(ctx, list, append(selected, client.InNamespace(t.Namespace), then)...)
	if apierrors.IsResourceExpired(err) {
		return fmt.Errorf("the API server no longer has that state (it keeps 5 minutes of history): %w", err)
	}
	if err != nil {
		return fmt.Errorf("list what existed when the status was written: %w", err)
	}
	return nil
}
