package operatortest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// state is what a namespace holds of the operator's work, without what differs
// between two namespaces in which the same was asked for.
type state map[string]any

// outside is the key of what exists outside Kubernetes.
const outside = "outside Kubernetes"

// clusterCertificate is a ConfigMap that the controller manager makes in every namespace.
const clusterCertificate = "kube-root-ca.crt"

// revisionAnnotation is written by the controller of Deployments.
const revisionAnnotation = "deployment.kubernetes.io/revision"

var anyUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// difference is empty when both states are the same.
func (s state) difference(wanted state) string {
	return cmp.Diff(map[string]any(wanted), map[string]any(s))
}

// state reads the resources, everything of the kinds that the operator makes
// that is not somebody else's, and the world outside.
func (t *trial) state(ctx context.Context) (state, error) {
	objects, err := t.list(ctx, t.sample.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	placeholders := []string{t.namespace, "<namespace>"}
	for _, resource := range objects {
		placeholders = append(placeholders, string(resource.GetUID()), "<UID of "+resource.GetName()+">")
	}
	for _, kind := range t.childKinds() {
		made, err := t.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		objects = append(objects, made...)
	}
	found, names := state{}, strings.NewReplacer(placeholders...)
	for _, object := range objects {
		if t.theirs[object.GetUID()] || object.GetName() == clusterCertificate {
			continue
		}
		key, content, err := t.normalize(object, names)
		if err != nil {
			return nil, err
		}
		found.add(key, content)
	}
	if t.operator.External != nil {
		external, err := t.operator.External.Snapshot(ctx, t.namespace)
		if err != nil {
			return nil, fmt.Errorf("look at the world outside: %w", err)
		}
		found[outside] = external
	}
	return found, nil
}

// add keeps apart what has the same name once it is normalised, as two objects of generated names may.
func (s state) add(name string, content any) {
	key := name
	for i := 2; s[key] != nil; i++ {
		key = fmt.Sprintf("%s (%d)", name, i)
	}
	s[key] = content
}

func (t *trial) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := t.cluster.admin.List(ctx, list, client.InNamespace(t.namespace)); err != nil {
		return nil, fmt.Errorf("list every %s in %s: %w", kind.Kind, t.namespace, err)
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, nil
}

// normalize returns an object's kind and name, and its content, without what is different every time.
func (t *trial) normalize(object *unstructured.Unstructured, names *strings.Replacer) (name string, content any, err error) {
	normal := object.DeepCopy()
	if t.operator.Normalize != nil {
		t.operator.Normalize(normal)
	}
	name = normal.GetKind() + "/" + normal.GetName()
	annotations := normal.GetAnnotations()
	delete(annotations, revisionAnnotation)
	generation := normal.GetGeneration()
	normal.Object["metadata"] = map[string]any{
		"labels":          normal.GetLabels(),
		"annotations":     annotations,
		"finalizers":      normal.GetFinalizers(),
		"ownerReferences": normal.GetOwnerReferences(),
		"isBeingDeleted":  normal.GetDeletionTimestamp() != nil,
	}
	if normal.GroupVersionKind() == t.sample.GroupVersionKind() {
		normalizeStatus(normal, generation)
	} else {
		delete(normal.Object, "status")
	}
	if normal.GetKind() == "Service" {
		normalizeService(normal)
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

// normalizeService drops the addresses and ports that the API server allots.
func normalizeService(service *unstructured.Unstructured) {
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
	text := anyUID.ReplaceAllString(names.Replace(string(content)), "<another UID>")
	var normal any
	if err := json.Unmarshal([]byte(text), &normal); err != nil {
		return nil, fmt.Errorf("read %s %s from JSON: %w", object.GetKind(), object.GetName(), err)
	}
	return normal, nil
}
