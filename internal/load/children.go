package load

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// removeTimeout bounds the wait until deleted objects and everything that they own are gone.
	removeTimeout = 10 * time.Minute
	// removeInterval is how often to check whether the objects are gone.
	removeInterval = time.Second
	// revisionAnnotations is the prefix of the annotations that the Deployment controller puts on Deployments.
	revisionAnnotations = "deployment.kubernetes.io/"
)

// children returns the objects that the operator made for the resources, in a form in which they can be created without
// the operator. There is one set for each resource that has children. children finds the objects by their controlling
// owners. It also adds to ownedKinds each kind of which at least one object has a controlling owner of any kind.
func (g *ground) children(ctx context.Context, resources load) (load, error) {
	kinds, err := g.deletableKinds()
	if err != nil {
		return load{}, err
	}
	byOwner := map[string][]*unstructured.Unstructured{}
	for _, kind := range kinds {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kind)
		if err := g.client.List(ctx, objects, client.InNamespace(namespace)); err != nil {
			return load{}, fmt.Errorf("list each %s: %w", kind.Kind, err)
		}
		owned := false
		for i := range objects.Items {
			owner := metav1.GetControllerOf(&objects.Items[i])
			owned = owned || owner != nil
			if g.isResource(owner) {
				byOwner[owner.Name] = append(byOwner[owner.Name], asCreated(&objects.Items[i]))
			}
		}
		if owned {
			g.ownedKinds = append(g.ownedKinds, kind)
		}
	}
	children := load{unmet: notCurrent}
	for _, resource := range resources.objects() {
		if set := byOwner[resource.GetName()]; len(set) > 0 {
			children.sets = append(children.sets, set)
		}
	}
	return children, nil
}

// isResource reports whether an owner has the kind of the resources.
func (g *ground) isResource(owner *metav1.OwnerReference) bool {
	kind := g.plan.object(1).GroupVersionKind()
	return owner != nil && owner.Kind == kind.Kind && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == kind.Group
}

// deletableKinds returns all namespaced kinds that clients can create, list and delete.
func (g *ground) deletableKinds() ([]schema.GroupVersionKind, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(g.cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	lists, err := asked.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("list all kinds: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"create", "delete", "list"}}, lists) {
		for _, each := range list.APIResources {
			kinds = append(kinds, schema.FromAPIVersionAndKind(list.GroupVersion, each.Kind))
		}
	}
	return kinds, nil
}

// asCreated returns an object as a client would create it: without its status, and with only the namespace, name,
// labels and annotations of its metadata. It also leaves out the Deployment controller's annotations and a Service's
// addresses. It keeps defaults in the spec.
func asCreated(found *unstructured.Unstructured) *unstructured.Unstructured {
	made := found.DeepCopy()
	delete(made.Object, "status")
	delete(made.Object, "metadata")
	made.SetNamespace(found.GetNamespace())
	made.SetName(found.GetName())
	made.SetLabels(found.GetLabels())
	annotations := found.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, revisionAnnotations) })
	if len(annotations) > 0 {
		made.SetAnnotations(annotations)
	}
	// Leave it to the API server to assign a Service new addresses. A headless Service must keep the value None.
	if address, _, _ := unstructured.NestedString(made.Object, "spec", "clusterIP"); address != "None" && made.GetKind() == "Service" {
		unstructured.RemoveNestedField(made.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(made.Object, "spec", "clusterIPs")
	}
	return made
}

// remove deletes the objects of a load and waits until they and everything that they own are gone.
func (g *ground) remove(ctx context.Context, l load) error {
	objects := l.objects()
	err := inParallel(ctx, objects, func(ctx context.Context, _ int, object *unstructured.Unstructured) error {
		err := g.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	looked := sets.New(g.ownedKinds...)
	keys := sets.New[objectKey]()
	for _, object := range objects {
		looked.Insert(object.GroupVersionKind())
		keys.Insert(keyOf(object))
	}
	var left string
	err = wait.PollUntilContextTimeout(ctx, removeInterval, removeTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = g.left(ctx, looked.UnsortedList(), keys)
		return left == "", err
	})
	if err != nil && left != "" {
		return fmt.Errorf("remove the objects: %s is still there: %w", left, err)
	}
	return err
}

// left returns the kind and name of an object that has one of the keys or a controlling owner, or "" if there is none.
func (g *ground) left(ctx context.Context, kinds []schema.GroupVersionKind, keys sets.Set[objectKey]) (string, error) {
	for _, kind := range kinds {
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(kind)
		if err := g.client.List(ctx, objects, client.InNamespace(namespace)); err != nil {
			return "", fmt.Errorf("list each %s: %w", kind.Kind, err)
		}
		for i := range objects.Items {
			object := &objects.Items[i]
			if metav1.GetControllerOf(object) != nil || keys.Has(objectKey{kind: kind.Kind, name: object.Name}) {
				return kind.Kind + " " + object.Name, nil
			}
		}
	}
	return "", nil
}
