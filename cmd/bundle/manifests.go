package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifests are the objects in the input, grouped by what happens to them. An object that goes into the bundle "as it
// is" loses only its namespace.
type manifests struct {
	// base is the handwritten part of the ClusterServiceVersion.
	base *unstructured.Unstructured
	// deployment, and the operator's own roles and bindings, become part of the ClusterServiceVersion. Other roles and
	// bindings go into the bundle as they are.
	deployment *unstructured.Unstructured
	roles      []*unstructured.Unstructured
	bindings   []*unstructured.Unstructured
	// samples become the ClusterServiceVersion's examples.
	samples []*unstructured.Unstructured
	// definitions and others go into the bundle as they are.
	definitions []*unstructured.Unstructured
	others      []*unstructured.Unstructured
	// accounts also go into the bundle as they are, except for the operator's own service account, which OLM creates.
	accounts []*unstructured.Unstructured
	// scorecard is the configuration of operator-sdk's tests of the bundle. It may be nil.
	scorecard *unstructured.Unstructured
}

// installable lists the kinds that manifests.others may contain: OLM installs objects of these kinds from a bundle.
var installable = []schema.GroupKind{
	{Kind: "Service"}, {Kind: "ConfigMap"}, {Kind: "Secret"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"},
	{Group: "monitoring.coreos.com", Kind: "PodMonitor"},
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"},
}

// readManifests reads a stream of YAML documents, and groups the objects.
func readManifests(input io.Reader) (*manifests, error) {
	sorted := &manifests{}
	var unknown []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(input))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		object, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("read document %d of the manifests: %w", number, err)
		}
		if object == nil {
			continue
		}
		known, err := sorted.add(object)
		if err != nil {
			return nil, err
		}
		if !known {
			unknown = append(unknown, object)
		}
	}
	return sorted, sorted.addSamples(unknown)
}

// decode returns the object in a document, or nil if the document has no content.
func decode(document []byte) (*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " ")) // the library's error has a line for each mistake
	}
	if string(data) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if object.GetAPIVersion() == "" || object.GetName() == "" {
		return nil, fmt.Errorf("a %s needs apiVersion and metadata.name", object.GetKind())
	}
	return object, nil
}

// add puts an object into its group, or drops it if it is a Namespace. It returns false if no group fits: then the
// object must be a sample.
func (m *manifests) add(object *unstructured.Unstructured) (bool, error) {
	kind := object.GroupVersionKind().GroupKind()
	switch kind {
	case schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}:
		return true, setOnly(&m.base, object)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return true, setOnly(&m.deployment, object)
	case schema.GroupKind{Group: "scorecard.operatorframework.io", Kind: "Configuration"}:
		return true, setOnly(&m.scorecard, object)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		m.definitions = append(m.definitions, object)
	case schema.GroupKind{Group: rbac, Kind: "Role"}, schema.GroupKind{Group: rbac, Kind: "ClusterRole"}:
		m.roles = append(m.roles, object)
	case schema.GroupKind{Group: rbac, Kind: "RoleBinding"}, schema.GroupKind{Group: rbac, Kind: "ClusterRoleBinding"}:
		m.bindings = append(m.bindings, object)
	case schema.GroupKind{Kind: "ServiceAccount"}:
		m.accounts = append(m.accounts, object)
	case schema.GroupKind{Kind: "Namespace"}:
		// The user who installs the operator chooses its namespace.
	default:
		if !slices.Contains(installable, kind) {
			return false, nil
		}
		m.others = append(m.others, object)
	}
	return true, nil
}

// setOnly sets the field for a kind that may occur only once in the input. A second object of this kind is an error.
func setOnly(place **unstructured.Unstructured, object *unstructured.Unstructured) error {
	if *place != nil {
		return fmt.Errorf("there are two objects of kind %s, %s and %s: a bundle has one", object.GetKind(), (*place).GetName(), object.GetName())
	}
	*place = object
	return nil
}

// addSamples adds the objects that belong to no other group. They must be of the operator's own kinds.
func (m *manifests) addSamples(objects []*unstructured.Unstructured) error {
	kinds, err := m.kinds()
	if err != nil {
		return err
	}
	for _, object := range objects {
		isOwn := func(kind ownKind) bool { return kind.GroupVersionKind == object.GroupVersionKind() }
		if !slices.ContainsFunc(kinds, isOwn) {
			return fmt.Errorf("%s %s is of a kind that is neither the operator's own nor one that OLM installs: remove it from config/", object.GetKind(), object.GetName())
		}
		m.samples = append(m.samples, object)
	}
	return nil
}
