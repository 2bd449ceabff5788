package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// rule is a rule from one of an operator's roles, as it was written.
type rule struct {
	File string
	// Cluster means that it is part of a ClusterRole, which the kit grants in all namespaces.
	Cluster bool
	rbacv1.PolicyRule
}

// grantAll gives an operator without declared roles all permissions.
func (runner *Runner) grantAll(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: runner.user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: runner.user}},
	}
	defer runner.Cluster.RemoveOnStop(binding)
	if err := runner.Cluster.Admin.Create(ctx, binding); err != nil {
		return fmt.Errorf("grant the operator all permissions: %w", err)
	}
	return nil
}

// grant gives the operator's user the permissions of the ClusterRoles in a file. It keeps the file's Roles for
// grantRoles. It returns an error if the file contains no rules.
func (runner *Runner) grant(ctx context.Context, file string) error {
	objects, err := manifest.Read(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		if err := runner.grantRole(ctx, file, object); err != nil {
			return fmt.Errorf("%s: grant %s %s: %w", file, object.GetKind(), object.GetName(), err)
		}
	}
	if !slices.ContainsFunc(runner.Rules, func(rule rule) bool { return rule.File == file }) {
		return fmt.Errorf("%s contains no Role or ClusterRole with a rule", file)
	}
	return nil
}

func (runner *Runner) grantRole(ctx context.Context, file string, object *unstructured.Unstructured) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: runner.user}}
	meta := metav1.ObjectMeta{Name: runner.user + "-" + object.GetName()}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: object.GetKind(), Name: meta.Name}
	switch object.GetKind() {
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return err
		}
		runner.addRules(file, true, role.Rules)
		made := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
		defer runner.Cluster.RemoveOnStop(made)
		defer runner.Cluster.RemoveOnStop(binding)
		return errors.Join(runner.Cluster.Admin.Create(ctx, made), runner.Cluster.Admin.Create(ctx, binding))
	case "Role":
		role := &rbacv1.Role{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return err
		}
		runner.addRules(file, false, role.Rules)
		runner.roles = append(runner.roles, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules})
	}
	return nil // a binding is of no use here, because it names the operator's service account
}

func (runner *Runner) addRules(file string, cluster bool, rules []rbacv1.PolicyRule) {
	for _, granted := range rules {
		runner.Rules = append(runner.Rules, rule{File: file, Cluster: cluster, PolicyRule: granted})
	}
}

// allows reports whether the rule grants a request's verb on its resource. It ignores resourceNames and subresources.
func (r rule) allows(request traffic.Request) bool {
	has := func(list []string, wanted string) bool {
		return slices.Contains(list, wanted) || slices.Contains(list, "*")
	}
	return has(r.Verbs, request.Verb) && has(r.APIGroups, request.Group) && has(r.Resources, request.Resource)
}

// Exceeds reports whether a request was for all namespaces, although none of the operator's ClusterRoles permits that.
func (runner *Runner) Exceeds(request traffic.Request) bool {
	return request.Confined && !slices.ContainsFunc(runner.Rules, func(rule rule) bool { return rule.Cluster && rule.allows(request) })
}

// config returns the configuration that an operator uses to connect as a user.
func (runner *Runner) config(user string) *rest.Config {
	config := rest.CopyConfig(runner.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// grantRoles gives the operator the permissions of its Roles in the trial's namespace. It uses the Runner's client,
// whose writes the timeline leaves out, because granting roles isn't part of the experiment.
func (t *Trial) grantRoles(ctx context.Context) error {
	for _, role := range t.roles {
		granted := role.DeepCopy()
		granted.Namespace = t.Namespace
		binding := &rbacv1.RoleBinding{
			ObjectMeta: *granted.ObjectMeta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: granted.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: t.user}},
		}
		if err := errors.Join(t.Runner.Cluster.Admin.Create(ctx, granted), t.Runner.Cluster.Admin.Create(ctx, binding)); err != nil {
			return fmt.Errorf("grant role %s: %w", granted.Name, err)
		}
		if err := t.allowed(ctx, granted.Rules); err != nil {
			return fmt.Errorf("grant role %s: %w", granted.Name, err)
		}
	}
	return nil
}

// allowed waits until the API server grants the first of some new rules. The API server learns of roles through a
// watch, like any other client. If that rule is not about resources, allowed doesn't wait.
func (t *Trial) allowed(ctx context.Context, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 || len(rules[0].Resources) == 0 {
		return nil
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: t.Namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if names := rules[0].ResourceNames; len(names) > 0 {
		asked.Name = names[0]
	}
	ctx, cancel := context.WithTimeout(ctx, testcluster.NamespaceTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, testcluster.PollInterval, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: t.user, Groups: []string{"system:authenticated"}, ResourceAttributes: asked,
		}}
		err := t.Runner.Cluster.Admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
}
