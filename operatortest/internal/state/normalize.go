package state

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RevisionAnnotation is an annotation that the Deployment controller writes.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

var anyUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Normalizer removes from objects what differs between two namespaces with the same resources.
type Normalizer struct {
	// Resource is the kind whose status is compared: the operator doesn't write the status of objects of other kinds.
	Resource schema.GroupVersionKind
	// Further removes whatever else differs between the namespaces, such as random content. It is nil if nothing else
	// does.
	Further func(*unstructured.Unstructured)
}

// Normalize returns an object's kind and name, and its content without what differs between namespaces. It keeps the
// status only if the object's kind is Resource.
func (n Normalizer) Normalize(object *unstructured.Unstructured, names *strings.Replacer) (name string, content any, err error) {
	normal := object.DeepCopy()
	if n.Further != nil {
		n.Further(normal)
	}
	DropGenerated(normal)
	name = KeyOf(normal)
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
	content, err = replaceNames(normal, names)
	return name, content, err
}

// trialNamespace matches the name of a trial's namespace, which the names of cluster-scoped objects contain. Source:
// testcluster's CreateNamespace.
var trialNamespace = regexp.MustCompile(`spec-[a-z0-9]{5}`)

// KeyOf returns an object's kind and name, in a form that is the same in every namespace.
func KeyOf(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + trialNamespace.ReplaceAllString(object.GetName(), "<namespace>")
}

// normalizeStatus removes each condition's lastTransitionTime, and replaces each observedGeneration with "current" or
// "outdated".
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

// DropGenerated removes from a Service or a Job what the API server generates for it. It leaves other kinds alone.
func DropGenerated(object *unstructured.Unstructured) {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		dropAddresses(object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		dropJobLabels(object)
	}
}

// jobLabels identify a Job's pods. Unless a Job sets manualSelector, the API server adds them when the Job is created,
// and refuses a Job that has another Job's.
var jobLabels = []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"}

func dropJobLabels(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	for _, path := range [][]string{
		{"metadata", "labels"}, // copied from the template if the Job has none
		{"spec", "template", "metadata", "labels"},
		{"spec", "selector", "matchLabels"},
	} {
		labels, found, _ := unstructured.NestedMap(job.Object, path...)
		for _, label := range jobLabels {
			delete(labels, label)
		}
		switch {
		case found && len(labels) == 0:
			unstructured.RemoveNestedField(job.Object, path...)
		case found:
			_ = unstructured.SetNestedMap(job.Object, labels, path...)
		}
	}
	if selector, found, _ := unstructured.NestedMap(job.Object, "spec", "selector"); found && len(selector) == 0 {
		unstructured.RemoveNestedField(job.Object, "spec", "selector")
	}
}

// dropAddresses removes the cluster IPs and the node ports, which the API server assigns unless the operator chooses
// them. A headless Service stays headless.
func dropAddresses(service *unstructured.Unstructured) {
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

// replaceNames replaces the names that differ between namespaces, and all UIDs, with placeholders.
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

// WithoutUIDs replaces each UID in a string with a placeholder.
func WithoutUIDs(text string) string { return anyUID.ReplaceAllString(text, "<another UID>") }
