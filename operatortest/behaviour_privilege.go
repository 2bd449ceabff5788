package operatortest

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

	"example.com/operator-workshop/operatortest/traffic"
)

var leastPrivilege = behaviour{
	name:    "least-privilege",
	promise: "needs all the permissions of its own role, and no others",
	advice: "the RBAC markers beside the code that needs them, and the role that is generated from them: " +
		"list and watch for what is in a cache, get only for what is read live, and each write verb only where it is used",
	check: func(ctx context.Context, lab *lab) error {
		return lab.try(ctx, func(ctx context.Context, trial *trial) error {
			if err := trial.live(ctx); err != nil {
				return errors.Join(trial.forbidden(), err)
			}
			if err := trial.forbidden(); err != nil {
				return err
			}
			return trial.unused()
		})
	},
}

// live takes an operator through everything it has permissions for.
func (t *trial) live(ctx context.Context) error {
	operator := t.start(RunOptions{LeaderElection: t.patientElection("first")})
	resource := t.resource(nil)
	if _, err := t.settle(ctx, operator, resource); err != nil {
		return err
	}
	if err := t.disturbAll(ctx); err != nil {
		return err
	}
	if err := t.thereAndBack(ctx, resource); err != nil {
		return err
	}
	spec, err := t.change(ctx)
	if err != nil {
		return err
	}
	if err := t.respec(ctx, resource, spec); err != nil {
		return err
	}
	if err := t.converge(ctx, resource); err != nil {
		return err
	}
	if err := operator.stop(); err != nil {
		return err
	}
	t.start(RunOptions{LeaderElection: t.patientElection("second")})
	if err := t.remove(ctx, resource); err != nil {
		return err
	}
	return t.gone(ctx, resource, "it was deleted")
}

// disturbAll deletes and changes each child in every declared way.
func (t *trial) disturbAll(ctx context.Context) error {
	resource := t.resource(nil)
	for _, declared := range t.operator.Children {
		patches := append(slices.Collect(maps.Values(declared.Drift)), "")
		for _, patch := range patches {
			if err := t.disturb(ctx, declared, patch); err != nil {
				return err
			}
			if err := t.converge(ctx, resource); err != nil {
				return err
			}
		}
	}
	return nil
}

// disturb patches a child of the trial's resource, or deletes it.
func (t *trial) disturb(ctx context.Context, declared Child, patch string) error {
	resource := t.resource(nil)
	if err := t.reread(ctx, resource); err != nil {
		return err
	}
	child, err := t.child(ctx, declared, resource)
	if err != nil || child == nil {
		return err
	}
	if patch == "" {
		return t.remove(ctx, child)
	}
	return t.patch(ctx, child, patch)
}

// forbidden returns an error if the API server refused a request for want of permission.
func (t *trial) forbidden() error {
	var refused []string
	for _, log := range t.logs() {
		for _, request := range log {
			if request.Status == http.StatusForbidden && !slices.Contains(refused, request.Kind()) {
				refused = append(refused, request.Kind())
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("expected every request to be allowed by the operator's roles\nfound refused ones: %s", strings.Join(refused, ", "))
}

// unused returns an error if the roles allow what the operator never asked for.
func (t *trial) unused() error {
	used := map[string]bool{}
	for _, log := range t.logs() {
		for _, request := range log {
			used[request.Kind()], used[standIn(request).Kind()] = true, true
		}
	}
	var unused []string
	for _, rule := range t.rules {
		for _, permission := range permissions(rule.PolicyRule) {
			if !used[permission] {
				unused = append(unused, permission+" ("+rule.file+")")
			}
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return fmt.Errorf("expected every permission of the operator's roles to be used in the life of a resource\nfound unused ones: %s", strings.Join(unused, ", "))
}

// standIn is what client-go asks for in the place of a request, of another server or at another time.
func standIn(request traffic.Request) traffic.Request {
	switch {
	case request.Lists: // an informer lists where the API server can't begin a watch with all objects
		request.Verb = "list"
	case request.IsEvent() && request.Verb == "create": // an event that is given again counts up the first one
		request.Verb = "patch"
	}
	return request
}

// permissions are what a rule allows, each in the words of [traffic.Request.Kind].
// A wildcard stays one, and so no request matches it.
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

// thereAndBack takes the resource to each spec that can't be met, and back.
func (t *trial) thereAndBack(ctx context.Context, resource *unstructured.Unstructured) error {
	for _, unmeetable := range t.operator.Unmeetable {
		if err := t.obstruct(ctx, resource, unmeetable); err != nil {
			return err
		}
		if err := t.respec(ctx, resource, t.sampleSpec()); err != nil {
			return err
		}
		if err := t.converge(ctx, resource); err != nil {
			return err
		}
	}
	return nil
}
