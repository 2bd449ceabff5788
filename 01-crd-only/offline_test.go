package crdonly

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// offline holds the versions of a definition by name. Its methods run the API server's own code on tickets, without a
// server, so that tests find a mistake in the definition within a second. The specs show that a real API server agrees.
type offline map[string]servedVersion

// servedVersion is the schema of a version, in the forms that the API server uses.
type servedVersion struct {
	structure *schema.Structural
	values    validation.SchemaValidator
	rules     *schemacel.Validator
}

// readOffline reads the stage's definition. It returns an error if that fails, or if the API server would refuse the
// definition.
func readOffline(ctx context.Context) (offline, error) {
	content, err := os.ReadFile(definitionFile)
	if err != nil {
		return nil, err
	}
	definition, err := decodeDefinition(content)
	if err != nil {
		return nil, err
	}
	checked := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition.DeepCopy(), checked, nil); err != nil {
		return nil, err
	}
	for _, version := range checked.Spec.Versions {
		if version.Storage {
			checked.Status.StoredVersions = append(checked.Status.StoredVersions, version.Name)
		}
	}
	var problems []string
	for _, problem := range definitions.ValidateCustomResourceDefinition(ctx, checked) {
		// The API server writes the status itself.
		if !strings.HasPrefix(problem.Field, "status.") {
			problems = append(problems, problem.Error())
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the API server refuses %s:\n%s", definitionFile, strings.Join(problems, "\n"))
	}
	return compile(definition)
}

// decodeDefinition decodes a definition, and fills in its defaults. It returns an error for an unknown field, as the
// API server does for kubectl.
func decodeDefinition(content []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	decoded, _, err := serializer.Decode(content, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", definitionFile, err)
	}
	definition, is := decoded.(*apiextensionsv1.CustomResourceDefinition)
	if !is {
		return nil, fmt.Errorf("%s holds no CustomResourceDefinition", definitionFile)
	}
	scheme.Default(definition)
	return definition, nil
}

// compile prepares the schema of each version for pruning, defaulting and validation.
func compile(definition *apiextensionsv1.CustomResourceDefinition) (offline, error) {
	api := offline{}
	for _, version := range definition.Spec.Versions {
		properties := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, properties, nil); err != nil {
			return nil, err
		}
		structure, err := schema.NewStructural(properties)
		if err != nil {
			return nil, err
		}
		values, _, err := validation.NewSchemaValidator(properties)
		if err != nil {
			return nil, err
		}
		rules := schemacel.NewValidator(structure, true, celconfig.PerCallLimit)
		api[version.Name] = servedVersion{structure: structure, values: values, rules: rules}
	}
	return api, nil
}

// write returns the object that the API server stores when a client with strict field validation writes this one, or
// the error with which it refuses the write. The object returned is in the version of the one written, even if the API
// server stores another version. old is the object stored before, or nil for a new one.
func (api offline) write(ctx context.Context, object, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := object.GroupVersionKind().Version
	version, found := api[name]
	if !found {
		return nil, fmt.Errorf("the definition has no version %q", name)
	}
	stored := object.DeepCopy()
	unknown := pruning.PruneWithOptions(stored.Object, version.structure, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("strict decoding error: unknown field %q", unknown[0])
	}
	defaulting.Default(stored.Object, version.structure)
	defaulting.PruneNonNullableNullsWithoutDefaults(stored.Object, version.structure)

	problems := validation.ValidateCustomResource(nil, stored.Object, version.values)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, version.structure, stored.Object)...)
	var before any
	if old != nil {
		// With conversion None, a read in this version drops the fields that only the other version has.
		converted := old.DeepCopy().Object
		pruning.Prune(converted, version.structure, true)
		before = converted
	}
	if len(problems) == 0 {
		problems, _ = version.rules.Validate(ctx, nil, version.structure, stored.Object, before, math.MaxInt64)
	}
	return stored, problems.ToAggregate()
}

// readObjects returns the objects in a YAML file, and the file's text.
func readObjects(file string) (objects []*unstructured.Unstructured, content string, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		object, err := decode(document)
		if err != nil {
			return nil, "", fmt.Errorf("read %s: %w", file, err)
		}
		objects = append(objects, object)
	}
	return objects, string(raw), nil
}

func decode(document []byte) (*unstructured.Unstructured, error) {
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(content)
}

// tryInvalid returns an error unless the API server's code refuses the last object of the file with the message in the
// first line. An earlier object in the file counts as already stored.
func (api offline) tryInvalid(ctx context.Context, file string) error {
	objects, content, err := readObjects(file)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(content, "\n")
	message, says := strings.CutPrefix(first, "# refused: ")
	if !says || message == "" {
		return fmt.Errorf("%s does not say why it is refused: its first line must be `# refused: ` and a part of the API server's message", file)
	}
	var old *unstructured.Unstructured
	last := len(objects) - 1
	for _, object := range objects[:last] {
		if before, after := object.GetName(), objects[last].GetName(); before != after {
			return fmt.Errorf("%s: its documents are called %q and %q, so the last one creates a second ticket: to change the first ticket, it must have the same name", file, before, after)
		}
		if old, err = api.write(ctx, object, nil); err != nil {
			return fmt.Errorf("%s: only its last object may be refused: %w", file, err)
		}
	}
	_, err = api.write(ctx, objects[last], old)
	switch {
	case err == nil:
		return fmt.Errorf("%s must be refused with %q, but is accepted", file, message)
	case !strings.Contains(err.Error(), message):
		return fmt.Errorf("%s must be refused with %q, but is refused with: %w", file, message, err)
	}
	return nil
}
