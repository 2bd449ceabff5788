package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

var leastPrivilege = behaviour{
	name:    "least-privilege",
	promise: "needs all the permissions of its own role, and no others",
	advice: "the RBAC markers beside the code that needs them, and the role that is generated from them: " +
		"list and watch for what is in a cache, get only for what is read live, and each write verb only where it is used",
	check: func(ctx context.Context, runner *trial.Runner) error {
		return runner.Try(ctx, "the lifecycle of a resource", func(ctx context.Context, t *trial.Trial) error {
			blocking, err := useAllPermissions(ctx, t)
			if err != nil {
				return errors.Join(forbiddenRequests(t), err)
			}
			if err := forbiddenRequests(t); err != nil {
				return err
			}
			return unusedPermissions(t, blocking)
		})
	},
}

// useAllPermissions starts an operator, and gives it work that should make it use all its permissions. It returns the
// permissions that the operator needs although no request names them.
func useAllPermissions(ctx context.Context, t *trial.Trial) (blocking []string, err error) {
	operator := t.Start(operatortest.RunOptions{LeaderElection: t.LenientElection("first")})
	resource := t.Resource(nil)
	if _, err := t.Establish(ctx, operator, resource); err != nil {
		return nil, err
	}
	if blocking, err = blockingPermissions(ctx, t); err != nil {
		return nil, err
	}
	return blocking, useOtherPermissions(ctx, t, operator, resource)
}

// useOtherPermissions disturbs the children of a converged resource, gives it other specs, including unmeetable ones,
// restarts the operator, and deletes the resource.
func useOtherPermissions(ctx context.Context, t *trial.Trial, operator *trial.Instance, resource *unstructured.Unstructured) error {
	if err := disturbAll(ctx, t); err != nil {
		return err
	}
	if err := visitUnmeetable(ctx, t, resource); err != nil {
		return err
	}
	spec, err := t.OtherSpec(ctx)
	if err != nil {
		return err
	}
	if err := t.SetSpec(ctx, resource, spec); err != nil {
		return err
	}
	if err := t.Converge(ctx, resource); err != nil {
		return err
	}
	if err := operator.Stop(); err != nil {
		return err
	}
	t.Start(operatortest.RunOptions{LeaderElection: t.LenientElection("second")})
	if err := t.Delete(ctx, resource); err != nil {
		return err
	}
	return t.WaitGone(ctx, resource, "it was deleted")
}

// blockingPermissions returns permissions that the admission plugin OwnerReferencesPermissionEnforcement requires: to
// set blockOwnerDeletion in an owner reference, the operator must be allowed to update the owner's finalizers. No
// request uses these permissions.
func blockingPermissions(ctx context.Context, t *trial.Trial) ([]string, error) {
	var permissions []string
	for _, kind := range t.ChildKinds() {
		children, err := t.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			for _, owner := range child.GetOwnerReferences() {
				if owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
					continue
				}
				kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
				mapping, err := t.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
				if err != nil {
					return nil, fmt.Errorf("find the resource of kind %s, which owns %s %s: %w", owner.Kind, child.GetKind(), child.GetName(), err)
				}
				finalizers := traffic.Request{Verb: "update", Group: kind.Group, Resource: mapping.Resource.Resource, Subresource: "finalizers"}
				permissions = append(permissions, finalizers.Kind())
			}
		}
	}
	return permissions, nil
}

// disturbAll changes each child in every declared way and then deletes it, and waits for the operator each time.
func disturbAll(ctx context.Context, t *trial.Trial) error {
	resource := t.Resource(nil)
	for _, declared := range t.Operator.Children {
		disturbances := append(slices.Sorted(maps.Keys(declared.Drift)), "")
		for _, what := range disturbances {
			patch := declared.Drift[what]
			if err := disturb(ctx, t, declared, patch); err != nil {
				return err
			}
			if err := t.Converge(ctx, resource); err != nil {
				return err
			}
		}
	}
	return nil
}

// disturb patches a child of the trial's resource, or deletes the child if the patch is empty. It does nothing if the
// resource should have no such child; if the child is missing, it returns an error.
func disturb(ctx context.Context, t *trial.Trial, declared operatortest.Child, patch string) error {
	resource := t.Resource(nil)
	if err := t.Get(ctx, resource); err != nil {
		return err
	}
	child, err := t.Child(ctx, declared, resource)
	if err != nil || child == nil {
		return err
	}
	if patch == "" {
		return t.Delete(ctx, child)
	}
	return t.Patch(ctx, child, patch)
}

// forbiddenRequests returns an error if the API server refused a request as forbidden, or would have refused it if the
// kit had not confined it to one namespace.
func forbiddenRequests(t *trial.Trial) error {
	var refused []string
	for _, log := range t.Logs() {
		for _, request := range log {
			what := request.Kind()
			if t.Exceeds(request) {
				what += " of all namespaces"
			} else if request.Status != http.StatusForbidden {
				continue
			}
			if !slices.Contains(refused, what) {
				refused = append(refused, what)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("expected every request to be allowed by the operator's roles\nfound these refused: %s", strings.Join(refused, ", "))
}

// unusedPermissions returns an error if the roles allow something that the operator never requested and that is neither
// in unnamed nor left out.
func unusedPermissions(t *trial.Trial, unnamed []string) error {
	used := map[string]bool{}
	for _, permission := range unnamed {
		used[permission] = true
	}
	for _, log := range t.Logs() {
		for _, request := range log {
			used[request.Kind()], used[standIn(request).Kind()] = true, true
		}
	}
	var unused []string
	for _, rule := range t.Rules {
		for _, permission := range permissions(rule.PolicyRule) {
			if !used[permission] && !unusedOnPurpose(t.Runner, permission) {
				unused = append(unused, permission+" ("+rule.File+")")
			}
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return fmt.Errorf("expected every permission of the operator's roles to be used in the lifecycle of a resource\nfound these unused: %s\n"+
		"remove them, or list in Operator.LeftOut those that the operator uses only for resources of another kind", strings.Join(unused, ", "))
}

// unusedOnPurpose reports whether Operator.LeftOut names a permission, or all permissions for its resource and the
// resource's subresources.
func unusedOnPurpose(runner *trial.Runner, permission string) bool {
	_, resource, _ := strings.Cut(permission, " ")
	resource, _, _ = strings.Cut(resource, "/")
	return runner.LeftOut("least-privilege/"+permission) || runner.LeftOut("least-privilege/* "+resource)
}

// standIn returns another request that the role must allow, too: the one that client-go would send instead to another
// server or at another time, or the create that a server-side apply implies. If there is none, it returns the given
// request.
func standIn(request traffic.Request) traffic.Request {
	switch {
	case request.Lists: // an informer lists if the API server can't begin a watch with all objects
		request.Verb = "list"
	case request.IsEvent() && request.Verb == "create": // a repeated event raises the count of the first one
		request.Verb = "patch"
	case request.Verb == "patch" && request.Status == http.StatusCreated: // a server-side apply that creates an object needs both permissions
		request.Verb = "create"
	}
	return request
}

// permissions returns the permissions in a rule, each in the form of [traffic.Request.Kind]. A wildcard remains a
// wildcard, so no request matches it.
func permissions(rule rbacv1.PolicyRule) []string {
	var all []string
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			all = append(all, verb+" "+path)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, subresource, _ := strings.Cut(resource, "/")
				all = append(all, traffic.Request{Verb: verb, Group: group, Resource: name, Subresource: subresource}.Kind())
			}
		}
	}
	return all
}

// visitUnmeetable gives the resource each spec in Operator.Unmeetable. After each, it restores the sample's spec and
// waits until the resource has converged.
func visitUnmeetable(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured) error {
	for _, unmeetable := range t.Operator.Unmeetable {
		if err := t.MakeUnmeetable(ctx, resource, unmeetable); err != nil {
			return err
		}
		if err := t.SetSpec(ctx, resource, t.SampleSpec()); err != nil {
			return err
		}
		if err := t.Converge(ctx, resource); err != nil {
			return err
		}
	}
	return nil
}
