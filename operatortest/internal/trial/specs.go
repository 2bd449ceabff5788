package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/traffic"
)

// Specs reads the schema of the sample's kind from the API server, once.
func (runner *Runner) Specs(ctx context.Context) (*specgen.Specs, error) {
	// Other callers need the result, too, even if the first one is cancelled.
	runner.specsOnce.Do(func() { runner.knownSpecs, runner.specsErr = runner.readSpecs(context.WithoutCancel(ctx)) })
	return runner.knownSpecs, runner.specsErr
}

func (runner *Runner) readSpecs(ctx context.Context) (*specgen.Specs, error) {
	kind := runner.Sample.GroupVersionKind()
	mapping, err := runner.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: mapping.Resource.GroupResource().String()}
	if err := runner.Cluster.Admin.Get(ctx, key, definition); err != nil {
		return nil, fmt.Errorf("get the definition %s: %w", key.Name, err)
	}
	made, err := specgen.New(definition, kind.Version, runner.Operator)
	if err != nil {
		return nil, err
	}
	namespace, err := runner.Cluster.CreateNamespace(ctx)
	if err != nil {
		return nil, err
	}
	runner.drafts = namespace.Name
	if runner.Operator.ServesWebhooks || len(runner.Operator.Webhooks) > 0 { // a webhook may look up what the sample refers to
		drafts := runner.newTrial("drafts", namespace.Name)
		err := drafts.prepare(ctx)
		for _, object := range drafts.clusterWide {
			runner.Cluster.RemoveOnStop(object)
		}
		if err != nil {
			return nil, err
		}
	}
	if made.Base, err = runner.Admits(ctx, nil); err != nil {
		return nil, err
	}
	return made, made.CheckRequired()
}

// OtherSpec returns a spec that the API server accepts as a change to the sample. The spec differs from the sample's in
// every field that may change and for which another value is known or, if the API server refuses that, in one of these
// fields. If there are none, it is the sample's own spec. OtherSpec returns the same spec on every call.
func (runner *Runner) OtherSpec(ctx context.Context) (map[string]any, error) {
	known, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	candidates := []map[string]any{known.Other()}
	changes, unknown := known.Changes()
	for _, change := range changes {
		for _, candidate := range change.Candidates {
			if change.Effective {
				candidates = append(candidates, candidate.To)
			}
		}
	}
	var spec map[string]any
	err = runner.Try(reference(ctx), "another spec than the sample's", func(ctx context.Context, t *Trial) error {
		stored := runner.Resource(nil)
		if err := t.Create(ctx, stored); err != nil {
			return err
		}
		var reasons []string
		for _, candidate := range candidates {
			err := t.Allows(ctx, stored, candidate)
			if err == nil {
				spec = candidate
				return nil
			}
			if !Refused(err) {
				return err
			}
			reasons = append(reasons, err.Error())
		}
		return fmt.Errorf("the API server refused every spec generated from the sample's (the fields for which no value is known: %q); "+
			"declare Operator.Values for fields that may be changed:\n%s", unknown, strings.Join(reasons, "\n"))
	})
	return spec, err
}

// SecondSpec returns a spec for a second resource. It differs from the sample's even in fields that can't be changed
// later, such as a name, unless the API server refuses that. SecondSpec then returns the spec of OtherSpec.
func (runner *Runner) SecondSpec(ctx context.Context) (map[string]any, error) {
	known, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	free := *known
	free.Immutable = nil
	spec := free.Other()
	if _, err := runner.Admits(ctx, spec); err == nil || !Refused(err) {
		return spec, err
	}
	return runner.OtherSpec(ctx) // some of the values are incompatible
}

// Admits returns a spec as the API server would store it, or an error if the API server refuses a new resource with
// that spec. In the result, the placeholder replaces the namespace's name again.
func (runner *Runner) Admits(ctx context.Context, spec map[string]any) (map[string]any, error) {
	resource := runner.Resource(spec)
	manifest.FillObject(resource, runner.drafts)
	if err := runner.Cluster.Admin.Create(ctx, resource, Strict, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("try out the spec %s for the kind %s: %w", specgen.OneLine(spec), resource.GetKind(), err)
	}
	stored, _, err := unstructured.NestedMap(resource.Object, "spec")
	return manifest.EmptyFields(stored, runner.drafts), err
}

// Allows returns an error if the API server refuses, in a dry run, to give a resource another spec.
func (t *Trial) Allows(ctx context.Context, resource *unstructured.Unstructured, spec map[string]any) error {
	content, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec", "value": manifest.FillFields(spec, t.Namespace)}})
	if err != nil {
		return fmt.Errorf("write a spec as JSON: %w", err)
	}
	// A merge patch can't set a field to null.
	patch := client.RawPatch(types.JSONPatchType, content)
	if err := t.Cluster.Admin.Patch(ctx, resource.DeepCopy(), patch, Strict, client.DryRunAll); err != nil {
		return fmt.Errorf("try out a change to the spec %s: %w", specgen.OneLine(spec), err)
	}
	return nil
}

// denial matches the beginning of the API server's message when a webhook denies a request.
var denial = regexp.MustCompile(`^admission webhook "[^"]+" denied the request`)

// Refused reports whether err means that the API server or a webhook rejected a spec, rather than that the request
// failed for another reason. The kit has all permissions, so Forbidden comes from admission control, not from a missing
// permission. A webhook may deny a request with any status code.
func Refused(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || errors.As(err, &status) && denial.MatchString(status.Status().Message)
}

// FreshOf returns the final state of a new resource with a spec. If that is the sample's own, FreshOf shares the state
// with behaviours that create the sample unchanged.
func (runner *Runner) FreshOf(ctx context.Context, known *specgen.Specs, spec map[string]any) (state.Snapshot, error) {
	if specgen.Same(spec, known.Base) {
		return runner.Fresh(ctx, nil)
	}
	found, err := runner.Fresh(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("the schema allows the spec %s (if it can't be met, declare Operator.Values): %w", specgen.OneLine(spec), err)
	}
	return found, nil
}

// RequestsFor returns a function that matches requests for objects of some kinds.
func (runner *Runner) RequestsFor(kinds ...schema.GroupVersionKind) (func(traffic.Request) bool, error) {
	var resources []schema.GroupResource
	for _, kind := range kinds {
		mapping, err := runner.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
		}
		resources = append(resources, mapping.Resource.GroupResource())
	}
	return func(request traffic.Request) bool {
		return slices.Contains(resources, schema.GroupResource{Group: request.Group, Resource: request.Resource})
	}, nil
}

// ChildNames returns the kinds and names of the children that a resource with a spec should have, in the order of
// their declarations.
func (runner *Runner) ChildNames(spec map[string]any) []string {
	return runner.childNames(spec, runner.Operator.Children)
}

// NamespacedChildNames is like ChildNames, but leaves out the cluster-scoped children, to which no quota applies.
func (runner *Runner) NamespacedChildNames(spec map[string]any) []string {
	clusterScoped := func(declared operatortest.Child) bool { return runner.clusterScoped[declared.Kind] }
	return runner.childNames(spec, slices.DeleteFunc(slices.Clone(runner.Operator.Children), clusterScoped))
}

func (runner *Runner) childNames(spec map[string]any, children []operatortest.Child) []string {
	var names []string
	for _, declared := range children {
		if name := declared.NameFor(runner.Resource(spec)); name != "" {
			names = append(names, declared.Kind.Kind+"/"+name)
		}
	}
	return names
}

// OtherSpecInPlace is like OtherSpec, but keeps the names of the children. It returns nil if no field is known that
// can be changed that way, or if the API server refuses each of these changes.
func (runner *Runner) OtherSpecInPlace(ctx context.Context) (map[string]any, error) {
	known, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	names := runner.ChildNames(known.Base)
	var renaming []string
	var candidates []map[string]any
	changes, _ := known.Changes()
	for _, change := range changes {
		for _, candidate := range change.Candidates {
			if !slices.Equal(runner.ChildNames(candidate.To), names) {
				renaming = append(renaming, change.Place)
			} else if change.Effective {
				candidates = append(candidates, candidate.To)
			}
		}
	}
	most := known.OtherThan(renaming)
	if !specgen.Same(most, known.Base) {
		candidates = slices.Insert(candidates, 0, most)
	}
	return runner.FirstAllowed(ctx, candidates)
}

// FirstAllowed returns the first spec that the API server accepts as a change to the sample, or nil if it accepts
// none.
func (runner *Runner) FirstAllowed(ctx context.Context, candidates []map[string]any) (allowed map[string]any, err error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	err = runner.Try(reference(ctx), "another spec that the API server allows", func(ctx context.Context, t *Trial) error {
		stored := runner.Resource(nil)
		if err := t.Create(ctx, stored); err != nil {
			return err
		}
		for _, candidate := range candidates {
			err := t.Allows(ctx, stored, candidate)
			if err == nil {
				allowed = candidate
				return nil
			}
			if !Refused(err) {
				return err
			}
		}
		return nil
	})
	return allowed, err
}
