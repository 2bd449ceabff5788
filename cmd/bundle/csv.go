package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// versionPattern matches a semantic version without build metadata: the ClusterServiceVersion's name can't contain a +.
var versionPattern = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

func isVersion(text string) bool { return versionPattern.MatchString(text) }

// object is a JSON object.
type object = map[string]any

// makeVersion returns the ClusterServiceVersion: the base, completed with what the other manifests say about the
// operator.
func makeVersion(m *manifests, version string, granted permissions) (*unstructured.Unstructured, error) {
	packageName, err := m.packageName()
	if err != nil {
		return nil, err
	}
	examples, err := m.examples()
	if err != nil {
		return nil, err
	}
	images, err := m.images()
	if err != nil {
		return nil, err
	}
	owned, err := m.owned()
	if err != nil {
		return nil, err
	}

	csv := m.base.DeepCopy()
	csv.SetName(packageName + ".v" + version)
	if problems := slices.Concat(validation.IsDNS1123Subdomain(csv.GetName()), validation.IsValidLabelValue(csv.GetName())); len(problems) > 0 {
		return nil, fmt.Errorf("the name %s can't be used: %s", csv.GetName(), problems[0])
	}
	annotations := csv.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["alm-examples"] = examples
	annotations["containerImage"] = images[0].Image
	csv.SetAnnotations(annotations)

	if err := unstructured.SetNestedSlice(csv.Object, owned, "spec", "customresourcedefinitions", "owned"); err != nil {
		return nil, fmt.Errorf("describe the operator's kinds: %w", err)
	}
	spec := csv.Object["spec"].(object)
	spec["version"] = version
	spec["relatedImages"] = images
	spec["install"] = object{"strategy": "deployment", "spec": m.strategy(granted)}
	return csv, nil
}

// packageName returns the part of the base's name before the version.
func (m *manifests) packageName() (string, error) {
	if m.base == nil {
		return "", errors.New("there is no ClusterServiceVersion: config/manifests/kustomization.yaml must list one in bases/")
	}
	name, version, found := strings.Cut(m.base.GetName(), ".v")
	if !found || !isVersion(version) {
		return "", fmt.Errorf("the ClusterServiceVersion's name is %s: give it a name such as memcached-operator.v0.0.0", m.base.GetName())
	}
	return name, nil
}

// strategy returns the ClusterServiceVersion's install strategy, which tells OLM how to install the operator.
func (m *manifests) strategy(granted permissions) object {
	strategy := object{
		"deployments": []any{object{
			"name":  m.deployment.GetName(),
			"label": m.deployment.GetLabels(),
			"spec":  m.deployment.Object["spec"],
		}},
	}
	for field, rules := range map[string][]any{"permissions": granted.namespaced, "clusterPermissions": granted.cluster} {
		if len(rules) > 0 {
			strategy[field] = []any{object{"serviceAccountName": granted.account, "rules": rules}}
		}
	}
	return strategy
}

// examples returns the samples as a JSON list.
func (m *manifests) examples() (string, error) {
	samples := make([]object, len(m.samples))
	for i, sample := range m.samples {
		samples[i] = sample.Object
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(samples); err != nil {
		return "", fmt.Errorf("write the examples: %w", err)
	}
	return strings.TrimSpace(text.String()), nil
}

// convert copies those fields of an object that the Go type has.
func convert(from *unstructured.Unstructured, into any) error {
	data, err := from.MarshalJSON()
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}
