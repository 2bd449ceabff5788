package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/traffic"
)

// An operator whose resources are cluster-scoped has no namespace to which it could be confined. All its trials share
// one cluster, so the names of cluster-scoped objects contain the name of the trial's namespace, and a label on the
// resources restricts the operator to those of its trial.

// trialLabel is the label that restricts an operator to the cluster-scoped resources of its trial.
const trialLabel = "operatortest.example.com/trial"

// templateMark replaces the trial's namespace in a template.
const templateMark = "namespace-of-the-trial"

// findScopes records which of the operator's kinds are cluster-scoped.
func (runner *Runner) findScopes(mapper meta.RESTMapper, kinds []schema.GroupVersionKind) error {
	runner.clusterScoped = map[schema.GroupVersionKind]bool{}
	for _, kind := range kinds {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
		}
		runner.clusterScoped[kind] = mapping.Scope.Name() == meta.RESTScopeNameRoot
		if kind == runner.Sample.GroupVersionKind() && runner.clusterScoped[kind] {
			runner.labelled = []schema.GroupResource{mapping.Resource.GroupResource()}
		}
	}
	return nil
}

// Fill replaces each placeholder in a string with the name of the trial's namespace.
func (t *Trial) Fill(text string) string { return manifest.Fill(text, t.Namespace) }

// place replaces the placeholders in an object, and puts the object into the trial's namespace or, if it is
// cluster-scoped, gives it a name that contains the namespace's name. A cluster-scoped resource of the sample's kind also
// gets trialLabel.
func (t *Trial) place(object *unstructured.Unstructured) {
	manifest.FillObject(object, t.Namespace)
	kind := object.GroupVersionKind()
	if !t.clusterScoped[kind] {
		object.SetNamespace(t.Namespace)
		return
	}
	object.SetNamespace("")
	if !strings.Contains(object.GetName(), t.Namespace) {
		object.SetName(object.GetName() + "-" + t.Namespace)
	}
	if kind == t.Sample.GroupVersionKind() {
		t.label(object)
	}
}

// share adds trialLabel to a cluster-scoped custom resource, and restricts the operator to the resources of that
// kind that have this label. It leaves objects of Kubernetes' own kinds alone.
func (t *Trial) share(ctx context.Context, object client.Object) error {
	kind, err := t.Cluster.Admin.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	mapping, err := t.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	resource := mapping.Resource.GroupResource()
	err = t.Cluster.Admin.Get(ctx, client.ObjectKey{Name: resource.String()}, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	t.label(object)
	if !slices.Contains(t.labelled, resource) {
		t.labelled = append(t.labelled, resource)
	}
	return nil
}

// label adds trialLabel to a cluster-scoped resource.
func (t *Trial) label(object client.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[trialLabel] = t.Namespace
	object.SetLabels(labels)
}

// namespaceOf returns the namespace of objects of a kind in this trial.
func (t *Trial) namespaceOf(kind schema.GroupVersionKind) string {
	if t.clusterScoped[kind] {
		return metav1.NamespaceNone
	}
	return t.Namespace
}

// isOurs reports whether an object belongs to this trial. It expects a namespaced object to be from the trial's
// namespace.
func (t *Trial) isOurs(object *unstructured.Unstructured) bool {
	return !t.clusterScoped[object.GroupVersionKind()] || strings.Contains(object.GetName(), t.Namespace)
}

// IsClusterScoped reports whether the sample's kind has no namespace.
func (runner *Runner) IsClusterScoped() bool {
	return runner.clusterScoped[runner.Sample.GroupVersionKind()]
}

// EventsNamespace returns the namespace to which client-go's recorders write events about the trial's resources.
func (t *Trial) EventsNamespace() string {
	if t.IsClusterScoped() {
		return metav1.NamespaceDefault
	}
	return t.Namespace
}

// mayWrite reports whether a write stays within the trial.
func (t *Trial) mayWrite(request traffic.Request) bool {
	switch {
	case slices.Contains(t.namespaces(), request.Namespace):
		return true
	case request.IsEvent():
		return request.Namespace == t.EventsNamespace()
	}
	return request.Namespace == "" && slices.ContainsFunc(t.namespaces(), func(namespace string) bool { return strings.Contains(request.Name, namespace) })
}

// Template returns a copy of an object in which a mark replaces the trial's namespace, even within names.
func (t *Trial) Template(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return replaced(object, t.Namespace, templateMark)
}

// FromTemplate returns the template's object for this trial.
func (t *Trial) FromTemplate(template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return replaced(template, templateMark, t.Namespace)
}

func replaced(object *unstructured.Unstructured, old, with string) (*unstructured.Unstructured, error) {
	content, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{}
	return made, json.Unmarshal([]byte(strings.ReplaceAll(string(content), old, with)), made)
}

// removeClusterScoped deletes the trial's cluster-scoped resources and children, which outlive its namespace.
func (t *Trial) removeClusterScoped(ctx context.Context) error {
	var errs []error
	for kind := range t.clusterScoped {
		if !t.clusterScoped[kind] {
			continue
		}
		objects, err := t.List(ctx, kind)
		errs = append(errs, err)
		for _, object := range objects {
			errs = append(errs, client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, object)))
		}
	}
	return errors.Join(errs...)
}

// confine restricts the operator's lists and watches of labelled resources to the trial's resources.
func (t *Trial) confine(config *rest.Config) *rest.Config {
	if len(t.labelled) > 0 {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &selecting{next: next, trial: t} })
	}
	return config
}

type selecting struct {
	next  http.RoundTripper
	trial *Trial
}

// RoundTrip implements http.RoundTripper.
func (s *selecting) RoundTrip(request *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "apis" || request.Method == http.MethodPost ||
		!slices.Contains(s.trial.labelled, schema.GroupResource{Group: parts[1], Resource: parts[3]}) {
		return s.next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	query := request.URL.Query()
	selector := fmt.Sprintf("%s in (%s)", trialLabel, strings.Join(s.trial.namespaces(), ","))
	if asked := query.Get("labelSelector"); asked != "" {
		selector += "," + asked
	}
	query.Set("labelSelector", selector)
	request.URL.RawQuery = query.Encode()
	return s.next.RoundTrip(request)
}
