package trial

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/traffic"
)

// confined returns an error if an operator wrote anything outside its trial, where operators of other trials work.
func (t *Trial) confined() error {
	for _, log := range t.Logs() {
		for _, request := range log {
			if request.IsWrite() && !t.mayWrite(request) && request.Status < http.StatusBadRequest {
				return fmt.Errorf("expected the operator to write only in its own namespace, %s\nfound: %s\n"+
					"confine its caches, writes and events to RunOptions.Namespace, or set Operator.Confine if it has no setting for that; "+
					"give each cluster-scoped object a name that contains its resource's namespace or, if the resource has none, the resource's name", t.Namespace, request)
			}
		}
	}
	return nil
}

func (runner *Runner) isNamespaced(request traffic.Request) bool {
	kind, err := runner.kindOf(request)
	if err != nil {
		return false // the API server tells the operator that there is no such resource
	}
	mapping, err := runner.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// kindOf returns the kind of a request's resource.
func (runner *Runner) kindOf(request traffic.Request) (schema.GroupVersionKind, error) {
	resource := schema.GroupVersionResource{Group: request.Group, Version: request.Version, Resource: request.Resource}
	kind, err := runner.Cluster.Admin.RESTMapper().KindFor(resource)
	if err != nil {
		return kind, fmt.Errorf("find the kind of %s: %w", resource.GroupResource(), err)
	}
	return kind, nil
}

// readFor reads the object that a request names.
func (runner *Runner) readFor(ctx context.Context, request traffic.Request) (*unstructured.Unstructured, error) {
	kind, err := runner.kindOf(request)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, runner.Cluster.Admin.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Name}, object)
}

// undeclared returns an error if operators left objects behind that are neither of their resource's kind nor of a
// declared child's kind. No comparison of states would show that leak.
//
// The operators' requests show what they created. So undeclared can't blame the operators for an object that Kubernetes
// created, and it lists objects only if the operators created some. An object that a child controls is not a leak,
// because the garbage collector deletes it after the child.
func (t *Trial) undeclared(ctx context.Context) error {
	made, err := t.MadeElse()
	if err != nil {
		return err
	}
	var left []string
	for kind, names := range made {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := t.Cluster.Admin.List(ctx, list, client.InNamespace(t.Namespace)); err != nil {
			return fmt.Errorf("list every %s in %s: %w", kind.Kind, t.Namespace, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if t.isChild(object) && slices.ContainsFunc(names, func(name string) bool { return IsNamed(object.Name, name) }) {
				left = append(left, kind.Kind+" "+object.Name)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("expected the operator to create only objects of the kinds in Operator.Children\nfound %s\n"+
		"declare a Child of that kind, or stop creating such objects", strings.Join(left, ", "))
}

// MadeElse returns the names of objects of undeclared kinds that operators created or, if there was no reply, may have
// created. See IsNamed for the form of the names.
func (t *Trial) MadeElse() (map[schema.GroupVersionKind][]string, error) {
	declared, err := t.RequestsFor(append(t.ChildKinds(), t.Sample.GroupVersionKind())...)
	if err != nil {
		return nil, err
	}
	made := map[schema.GroupVersionKind][]string{}
	for _, log := range t.Logs() {
		for _, request := range log {
			if !makes(request) || declared(request) {
				continue
			}
			kind, err := t.kindOf(request)
			if err != nil {
				return nil, err
			}
			made[kind] = append(made[kind], request.Name)
		}
	}
	return made, nil
}

// makes reports whether a request created an object, or is a create request without a reply, which may have created one.
// A patch can create one, too: server-side apply does. Events and Leases don't count.
func makes(request traffic.Request) bool {
	if request.IsEvent() || request.IsLease() || request.Subresource != "" || !request.IsWrite() {
		return false
	}
	return request.Status == http.StatusCreated || request.Status == 0 && request.Verb == "create"
}

// IsNamed compares an object's name with the name in a request, which ends with a star if the API server had to
// complete it.
func IsNamed(name, asked string) bool {
	if prefix, generated := strings.CutSuffix(asked, "*"); generated {
		return strings.HasPrefix(name, prefix)
	}
	return name == asked
}
