package state

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RevisionAnnotation is written by the controller of Deployments.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

var anyUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Normalizer takes out of objects what differs between two namespaces in which the same was asked for.
type Normalizer struct {
	// Resource is the kind whose status counts: that of other objects is not the operator's.
	Resource schema.GroupVersionKind
	// Further removes what differs for this operator. Nil if nothing else does.
	Further func(*unstructured.Unstructured)
}

// Normalize returns an object's kind and name, and its content, without what is different every time.
func (n Normalizer) Normalize(object *unstructured.Unstructured, names *strings.Replacer) (name string, content any, err error) {
	normal := object.DeepCopy()
	if n.Further != nil {
		n.Further(normal)
	}
	name = normal.GetKind() + "/" + normal.GetName()
	annotations := normal.GetAnnotations()
	delete(annotations, RevisionAnnotation)
	generation := normal.GetGeneration()
	normal.Object["metadata"] = map[string]any{
		"labels":          normal.GetLabels(),
		"annotations":     annotations,
		"finalizers":      normal.GetFinalizers(),
		"ownerReferences": normal.GetOwnerReferences(),
		"isBeingDeleted":  normal.GetDeletionTimestamp() != nil,
	}
	if normal.GroupVersionKind() == n.Resource {
		normalizeStatus(normal, generation)
	} else {
		delete(normal.Object, "status")
	}
	if normal.GetKind() == "Service" {
		NormalizeService(normal)
	}
	content, err = replaceNames(normal, names)
	return name, content, err
}

// normalizeStatus keeps of the times nothing, and of the generations whether they are current.
func normalizeStatus(resource *unstructured.Unstructured, generation int64) {
	status, found, _ := unstructured.NestedMap(resource.Object, "status")
	if !found {
		return
	}
	observed := func(fields map[string]any) {
		if seen, found := fields["observedGeneration"]; found {
			fields["observedGeneration"] = "outdated"
			if seen == generation {
				fields["observedGeneration"] = "current"
			}
		}
	}
	observed(status)
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok {
			delete(fields, "lastTransitionTime")
			observed(fields)
		}
	}
	resource.Object["status"] = status
}

// NormalizeService drops the addresses and ports that the API server allots.
func NormalizeService(service *unstructured.Unstructured) {
	address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if address != "None" {
		unstructured.RemoveNestedField(service.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(service.Object, "spec", "clusterIPs")
	}
	unstructured.RemoveNestedField(service.Object, "spec", "healthCheckNodePort")
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(service.Object, ports, "spec", "ports")
	}
}

// replaceNames puts placeholders for the namespace and for UIDs.
func replaceNames(object *unstructured.Unstructured, names *strings.Replacer) (any, error) {
	content, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("write %s %s as JSON: %w", object.GetKind(), object.GetName(), err)
	}
	text := WithoutUIDs(names.Replace(string(content)))
	var normal any
	if err := json.Unmarshal([]byte(text), &normal); err != nil {
		return nil, fmt.Errorf("read %s %s from JSON: %w", object.GetKind(), object.GetName(), err)
	}
	return normal, nil
}

// WithoutUIDs puts a placeholder for each UID in a text.
func WithoutUIDs(text string) string { return anyUID.ReplaceAllString(text, "<another UID>") }
