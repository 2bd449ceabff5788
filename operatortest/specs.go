package operatortest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// specs makes specs of a kind from the schema in its definition. The API server
// may still refuse one, for rules that a schema expresses in code (CEL) are not understood.
type specs struct {
	schema *apiextensionsv1.JSONSchemaProps
	// base is the sample's spec as the API server stores it, with defaults.
	base map[string]any
	// values, immutable and fixed are those of the Operator, by the paths of fields.
	values    map[string][]any
	immutable []string
	fixed     map[string]string
}

// specs reads the schema of the sample's kind from the API server, once.
func (l *lab) specs(ctx context.Context) (*specs, error) {
	// Others need them, too, whatever becomes of the trial that asks first.
	l.specsOnce.Do(func() { l.knownSpecs, l.specsErr = l.readSpecs(context.WithoutCancel(ctx)) })
	return l.knownSpecs, l.specsErr
}

func (l *lab) readSpecs(ctx context.Context) (*specs, error) {
	kind := l.sample.GroupVersionKind()
	mapping, err := l.cluster.admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: mapping.Resource.GroupResource().String()}
	if err := l.cluster.admin.Get(ctx, key, definition); err != nil {
		return nil, fmt.Errorf("get the definition %s: %w", key.Name, err)
	}
	made := &specs{values: map[string][]any{}, immutable: l.operator.Immutable, fixed: l.operator.Fixed}
	if made.schema, err = specSchema(definition, kind); err != nil {
		return nil, err
	}
	for path, values := range l.operator.Values {
		if !declares(made.schema, path) {
			return nil, fmt.Errorf("operator.Values names %s, which %s does not have", path, key.Name)
		}
		if made.values[path], err = asJSON(values); err != nil {
			return nil, fmt.Errorf("operator.Values of %s: %w", path, err)
		}
	}
	for path, reason := range l.operator.Fixed {
		if !declares(made.schema, path) || reason == "" {
			return nil, fmt.Errorf("operator.Fixed has %s=%q: name a field of %s, and the reason why it keeps its value", path, reason, key.Name)
		}
	}
	namespace, err := l.cluster.createNamespace(ctx)
	if err != nil {
		return nil, err
	}
	l.drafts = namespace.Name
	made.base, err = l.admits(ctx, nil)
	return made, err
}

// specSchema is the schema of spec in one version of a definition.
func specSchema(definition *apiextensionsv1.CustomResourceDefinition, kind schema.GroupVersionKind) (*apiextensionsv1.JSONSchemaProps, error) {
	for _, version := range definition.Spec.Versions {
		if version.Name != kind.Version || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if spec, found := version.Schema.OpenAPIV3Schema.Properties["spec"]; found {
			return &spec, nil
		}
	}
	return nil, fmt.Errorf("the definition %s has no spec in version %s: there is nothing to change", definition.Name, kind.Version)
}

// declares tells whether the schema of spec has a field of that path, or keeps fields of any name there.
func declares(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	rest, found := strings.CutPrefix(path, "spec")
	for found && rest != "" {
		if schema.XPreserveUnknownFields != nil && len(schema.Properties) == 0 {
			return true
		}
		schema, rest = enter(schema, rest)
		found = schema != nil
	}
	return found
}

// enter goes one step down a path, and returns nil if there is no such field.
func enter(schema *apiextensionsv1.JSONSchemaProps, path string) (inner *apiextensionsv1.JSONSchemaProps, rest string) {
	if rest, items := strings.CutPrefix(path, "[]"); items {
		return itemSchema(schema), rest
	}
	if rest, values := strings.CutPrefix(path, ".*"); values {
		return valueSchema(schema), rest
	}
	name := strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name = name[:end]
	}
	property, declared := schema.Properties[name]
	if !declared {
		return nil, ""
	}
	return &property, strings.TrimPrefix(strings.TrimPrefix(path, "."), name)
}

// asJSON turns values into the types that an unstructured object is made of.
func asJSON(values []any) ([]any, error) {
	content, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var result []any
	return result, utiljson.Unmarshal(content, &result)
}

// change is a spec that differs from the sample's in as many fields as
// possible, and to which the API server lets the sample be changed. It is always the same.
func (l *lab) change(ctx context.Context) (map[string]any, error) {
	known, err := l.specs(ctx)
	if err != nil {
		return nil, err
	}
	candidates := []map[string]any{known.other()}
	changes, unknown := known.changes()
	for _, change := range changes {
		for _, candidate := range change.candidates {
			if change.effective {
				candidates = append(candidates, candidate.to)
			}
		}
	}
	var spec map[string]any
	err = l.try(ctx, func(ctx context.Context, trial *trial) error {
		stored := l.resource(nil)
		if err := trial.create(ctx, stored); err != nil {
			return err
		}
		var reasons []string
		for _, candidate := range candidates {
			err := trial.allows(ctx, stored, candidate)
			if err == nil {
				spec = candidate
				return nil
			}
			if !refused(err) {
				return err
			}
			reasons = append(reasons, err.Error())
		}
		return fmt.Errorf("find another spec than the sample's: declare Operator.Values for fields that may be changed; "+
			"for %q no value is known, and the API server refused what was made for the others:\n%s", unknown, strings.Join(reasons, "\n"))
	})
	return spec, err
}

// admits returns a spec as the API server would store it, or an error if it
// refuses a new resource of that spec.
func (l *lab) admits(ctx context.Context, spec map[string]any) (map[string]any, error) {
	resource := l.resource(spec)
	resource.SetNamespace(l.drafts)
	if err := l.cluster.admin.Create(ctx, resource, strict, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("try out a %s of the spec %s: %w", resource.GetKind(), oneLine(spec), err)
	}
	stored, _, err := unstructured.NestedMap(resource.Object, "spec")
	return stored, err
}

// allows returns an error if the API server refuses to change a resource's spec.
func (t *trial) allows(ctx context.Context, resource *unstructured.Unstructured, spec map[string]any) error {
	content, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec", "value": spec}})
	if err != nil {
		return fmt.Errorf("write a spec as JSON: %w", err)
	}
	// A merge patch could not say that a field is null.
	patch := client.RawPatch(types.JSONPatchType, content)
	if err := t.cluster.admin.Patch(ctx, resource.DeepCopy(), patch, strict, client.DryRunAll); err != nil {
		return fmt.Errorf("try out a change to the spec %s: %w", oneLine(spec), err)
	}
	return nil
}

// refused tells a spec that the API server or a webhook turns down from a
// request that failed. The kit may do everything, so it is never forbidden something for another reason.
func refused(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }

// oneLine shows a spec to a reader.
func oneLine(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(content)
}

// wanted is what a new resource of a spec ends like. The sample's own was seen by other behaviours.
func (l *lab) wanted(ctx context.Context, known *specs, spec map[string]any) (state, error) {
	if equal(spec, known.base) {
		return l.fresh(ctx, nil)
	}
	found, err := l.fresh(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("the spec %s is valid by its schema (if it can't be met, declare Operator.Values): %w", oneLine(spec), err)
	}
	return found, nil
}
