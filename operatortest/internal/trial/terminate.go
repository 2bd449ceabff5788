package trial

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/testcluster"
)

// GrantOutside makes sure that all permissions of the trial's operators are defined outside its namespace. If the
// operator's roles include a Role, the trial's operators get a user of their own, with a ClusterRole that contains the
// rules of all roles. A trial with a second namespace needs these rules there, too. When a namespace is deleted, the
// Roles and RoleBindings in it may be deleted first. An operator that watches the whole cluster would keep its
// ClusterRole, so an operator that the kit confines to a namespace keeps its permissions, too.
func (t *Trial) GrantOutside(ctx context.Context) error {
	if len(t.roles) == 0 {
		return nil // no permission is defined in the namespace
	}
	t.user += "-of-" + t.Namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: t.user}}
	for _, granted := range t.Rules {
		role.Rules = append(role.Rules, granted.PolicyRule)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: t.user}},
	}
	defer t.Cluster.RemoveOnStop(role)
	defer t.Cluster.RemoveOnStop(binding)
	if err := errors.Join(t.Runner.Cluster.Admin.Create(ctx, role), t.Runner.Cluster.Admin.Create(ctx, binding)); err != nil {
		return fmt.Errorf("grant the roles outside the namespace: %w", err)
	}
	return t.allowed(ctx, role.Rules)
}

// DeleteNamespace deletes the trial's namespace, and returns once nothing can be created in it any more. Kubernetes
// starts to empty it seconds later.
func (t *Trial) DeleteNamespace(ctx context.Context) error {
	t.last, t.kept = nil, nil // nothing outlives its namespace
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Namespace}}
	if err := t.Cluster.Admin.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("delete the namespace: %w", err)
	}
	if err := t.waitProbeRefused(ctx); err != nil {
		return fmt.Errorf("wait until nothing can be created in the deleted namespace: %w", err)
	}
	return nil
}

// WaitNamespaceEmptied waits until each custom resource in the trial's deleted namespace is gone or is being deleted.
func (t *Trial) WaitNamespaceEmptied(ctx context.Context) error {
	return t.Within(ctx, testcluster.NamespaceTimeout, "Kubernetes to empty the namespace", func(ctx context.Context) error {
		resources, err := t.List(ctx, t.Sample.GroupVersionKind())
		if err != nil {
			return err
		}
		for _, resource := range resources {
			if resource.GetDeletionTimestamp() == nil {
				return fmt.Errorf("%s %s is not being deleted yet", resource.GetKind(), resource.GetName())
			}
		}
		return nil
	})
}

// WaitNamespaceGone waits until the trial's deleted namespace is gone.
func (t *Trial) WaitNamespaceGone(ctx context.Context) error {
	return t.Within(ctx, max(t.Operator.Timeout, testcluster.NamespaceTimeout), "the namespace to be emptied and removed", func(ctx context.Context) error {
		namespace := &corev1.Namespace{}
		err := t.Cluster.Admin.Get(ctx, client.ObjectKey{Name: t.Namespace}, namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get the namespace: %w", err)
		}
		found := errors.New("it is still there")
		for _, condition := range namespace.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				found = fmt.Errorf("it is still there: %s", condition.Message)
			}
		}
		return found
	})
}
