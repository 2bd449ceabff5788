package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownKind is a served version of one of the operator's own kinds.
type ownKind struct {
	schema.GroupVersionKind
	// definition is the name of the CRD.
	definition string
	schema     crdSchema
}

// crdSchema contains a CRD's descriptions of a field and of the fields in it.
type crdSchema struct {
	Description string
	Properties  map[string]crdSchema
}

// kinds lists the served versions of all definitions.
func (m *manifests) kinds() ([]ownKind, error) {
	var kinds []ownKind
	for _, object := range m.definitions {
		var definition struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Served bool
					Schema struct{ OpenAPIV3Schema crdSchema }
				}
			}
		}
		if err := convert(object, &definition); err != nil {
			return nil, err
		}
		for _, version := range definition.Spec.Versions {
			if !version.Served {
				continue
			}
			kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
			kinds = append(kinds, ownKind{GroupVersionKind: kind, definition: object.GetName(), schema: version.Schema.OpenAPIV3Schema})
		}
	}
	return kinds, nil
}

// owned returns the base's entries about the operator's kinds, completed with the descriptions in the CRDs. It returns
// an error unless the base describes exactly the operator's kinds, and each has a sample.
func (m *manifests) owned() ([]any, error) {
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	owned, _, err := unstructured.NestedSlice(m.base.Object, "spec", "customresourcedefinitions", "owned")
	if err != nil {
		return nil, fmt.Errorf("read ClusterServiceVersion %s: %w", m.base.GetName(), err)
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(owned, kind.isDescribedBy) {
			return nil, fmt.Errorf("%s in version %s is not described: add it to spec.customresourcedefinitions.owned of the ClusterServiceVersion", kind.definition, kind.Version)
		}
		isSample := func(sample *unstructured.Unstructured) bool {
			return sample.GroupVersionKind() == kind.GroupVersionKind
		}
		if !slices.ContainsFunc(m.samples, isSample) {
			return nil, fmt.Errorf("there is no sample of %s in version %s: add one to config/samples", kind.Kind, kind.Version)
		}
	}
	for _, entry := range owned {
		i := slices.IndexFunc(kinds, func(kind ownKind) bool { return kind.isDescribedBy(entry) })
		if i < 0 {
			return nil, fmt.Errorf("the ClusterServiceVersion describes a kind that config/crd does not have: %v", nameOf(entry))
		}
		if err := kinds[i].describe(entry.(object)); err != nil {
			return nil, err
		}
	}
	return owned, nil
}

// nameOf returns the kind, the name and the version that an entry in the list "owned" is about.
func nameOf(entry any) string {
	fields, _ := entry.(object)
	return fmt.Sprintf("%v %v in version %v", fields["kind"], fields["name"], fields["version"])
}

func (k ownKind) isDescribedBy(entry any) bool {
	return nameOf(entry) == fmt.Sprintf("%s %s in version %s", k.Kind, k.definition, k.Version)
}

// describe adds the CRD's descriptions to the entry and its descriptors, if they have none. Descriptors tell a
// web console how to show the fields of the spec and the status.
func (k ownKind) describe(entry object) error {
	setMissing(entry, "description", k.schema.Description)
	for _, part := range []string{"spec", "status"} {
		descriptors, _ := entry[part+"Descriptors"].([]any)
		for _, descriptor := range descriptors {
			fields, _ := descriptor.(object)
			path, _ := fields["path"].(string)
			field, found := k.schema.Properties[part].find(path)
			if !found {
				return fmt.Errorf("the ClusterServiceVersion describes %s.%s of %s, which the CRD does not have", part, path, k.Kind)
			}
			setMissing(fields, "description", field.Description)
		}
	}
	return nil
}

// find returns the field at a path such as image or tls.secretName.
func (s crdSchema) find(path string) (crdSchema, bool) {
	for name := range strings.SplitSeq(path, ".") {
		field, found := s.Properties[name]
		if !found {
			return s, false
		}
		s = field
	}
	return s, true
}

func setMissing(fields object, name, value string) {
	if present, _ := fields[name].(string); present == "" {
		fields[name] = value
	}
}
