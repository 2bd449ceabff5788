package main

import (
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbac = rbacv1.GroupName

// permissions are the rules that the operator's service account gets, and the roles, bindings and service accounts that
// go into the bundle as they are.
type permissions struct {
	account, namespace string
	// namespaced lists the rules that RoleBindings grant. OLM grants them in the operator's namespace and in each
	// namespace that the operator watches.
	namespaced []any
	// cluster lists the rules that ClusterRoleBindings grant, in all namespaces.
	cluster []any
	// others are the bindings and service accounts that are not the operator's, and the roles that it isn't bound to or that
	// others are bound to as well.
	others []*unstructured.Unstructured
}

// grant is a role together with the kind of the bindings that grant it.
type grant struct {
	role    *unstructured.Unstructured
	binding string
}

// grants collects the rules of the operator's own roles, and puts all other roles and bindings into others.
func (m *manifests) grants() (permissions, error) {
	granted, err := m.account()
	if err != nil {
		return granted, err
	}
	// A role that others are bound to as well goes into the bundle, besides its rules.
	own, others := map[*unstructured.Unstructured]bool{}, map[*unstructured.Unstructured]bool{}
	included := map[grant]bool{}
	for _, object := range m.bindings {
		var binding rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
		if err := convert(object, &binding); err != nil {
			return granted, err
		}
		isOwn, err := granted.isOwn(&binding)
		if err != nil {
			return granted, err
		}
		role := m.role(&binding)
		if !isOwn {
			granted.others, others[role] = append(granted.others, object), true
			continue
		}
		if role == nil {
			return granted, fmt.Errorf("%s %s grants the %s %s, which config/ does not have: a bundle must contain each rule itself", binding.Kind, binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		own[role] = true
		if included[grant{role, binding.Kind}] {
			continue // another binding of this kind grants the same rules
		}
		included[grant{role, binding.Kind}] = true
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil {
			return granted, fmt.Errorf("read %s %s: %w", role.GetKind(), role.GetName(), err)
		}
		if binding.Kind == "ClusterRoleBinding" {
			granted.cluster = append(granted.cluster, rules...)
		} else {
			granted.namespaced = append(granted.namespaced, rules...)
		}
	}
	for _, role := range m.roles {
		if !own[role] || others[role] {
			granted.others = append(granted.others, role)
		}
	}
	return granted, nil
}

// account finds the operator's service account, and puts all other service accounts into others.
func (m *manifests) account() (permissions, error) {
	var granted permissions
	if m.deployment == nil {
		return granted, errors.New("there is no Deployment: config/default must have the manager's")
	}
	name, _, err := unstructured.NestedString(m.deployment.Object, "spec", "template", "spec", "serviceAccountName")
	if err != nil || name == "" {
		return granted, fmt.Errorf("the Deployment %s names no service account, without which the operator's roles can't be found: set serviceAccountName", m.deployment.GetName())
	}
	granted.account, granted.namespace = name, m.deployment.GetNamespace()
	for _, account := range m.accounts {
		if account.GetName() != name || account.GetNamespace() != granted.namespace {
			granted.others = append(granted.others, account)
		}
	}
	return granted, nil
}

// isOwn reports whether the binding is for the operator's service account. A binding that is also for others is an
// error.
func (p *permissions) isOwn(binding *rbacv1.ClusterRoleBinding) (bool, error) {
	own := 0
	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Name == p.account && subject.Namespace == p.namespace {
			own++
		}
	}
	if own > 0 && own < len(binding.Subjects) {
		return false, fmt.Errorf("%s %s is for the service account %s and for others: give the others a binding of their own", binding.Kind, binding.Name, p.account)
	}
	return own > 0, nil
}

// role returns the role that a binding refers to, or nil if there is none.
func (m *manifests) role(binding *rbacv1.ClusterRoleBinding) *unstructured.Unstructured {
	namespace := "" // of a ClusterRole
	if binding.RoleRef.Kind == "Role" {
		namespace = binding.Namespace
	}
	for _, role := range m.roles {
		if role.GetKind() == binding.RoleRef.Kind && role.GetName() == binding.RoleRef.Name && role.GetNamespace() == namespace {
			return role
		}
	}
	return nil
}
