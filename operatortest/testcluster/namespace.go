package testcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamespaceTimeout bounds a step of the kit's own work in a namespace, such as the wait until the namespace is usable,
// or until the custom resources of a kind have disappeared from it.
const NamespaceTimeout = 30 * time.Second

// Namespace creates a namespace for one spec and returns its name.
//
// After the spec, the custom resources in the namespace are deleted, and the spec fails if one of them doesn't
// disappear, for example because of a finalizer that is never removed. On an existing cluster the namespace is deleted,
// too. Kubernetes starts to empty a deleted namespace only after 5 seconds, so the spec doesn't wait for that;
// [Cluster.Stop] does, once for all namespaces. Any other cluster is removed as a whole at the end: emptying a
// namespace would cost the API server more than most specs do.
func (c *Cluster) Namespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	namespace, err := c.CreateNamespace(ctx)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(c.deleteNamespace, namespace)
	return namespace.Name
}

// CreateNamespace creates a namespace, and returns when pods can be created in it. On an existing cluster,
// [Cluster.Stop] deletes the namespace.
func (c *Cluster) CreateNamespace(ctx context.Context) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	if err := c.Admin.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create a namespace for the spec: %w", err)
	}
	c.RemoveOnStop(namespace)
	ctx, cancel := context.WithTimeout(ctx, NamespaceTimeout)
	defer cancel()
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: namespace.Name, Name: "default"}
	exists := func(ctx context.Context) (bool, error) {
		err := c.Admin.Get(ctx, key, account)
		return err == nil, client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextCancel(ctx, PollInterval, true, exists); err != nil {
		return nil, fmt.Errorf("wait for the default service account of namespace %s, which pods need: %w", namespace.Name, err)
	}
	return namespace, nil
}

func (c *Cluster) deleteNamespace(ctx context.Context, namespace *corev1.Namespace) {
	for _, kind := range c.kinds {
		gomega.Expect(c.deleteAll(ctx, kind, namespace.Name)).To(gomega.Succeed())
		gomega.Eventually(c.expectNone).WithContext(ctx).WithArguments(kind, namespace.Name).
			WithTimeout(NamespaceTimeout).WithPolling(PollInterval).
			Should(gomega.Succeed(), "everything that a spec creates must be gone after it")
	}
	if c.Existing {
		gomega.Expect(client.IgnoreNotFound(c.Admin.Delete(ctx, namespace))).To(gomega.Succeed(), "delete the spec's namespace")
	}
}

func (c *Cluster) deleteAll(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := c.Admin.DeleteAllOf(ctx, object, client.InNamespace(namespace))
	if err := ignoreUndefined(err); err != nil {
		return fmt.Errorf("delete every %s in %s: %w", kind.Kind, namespace, err)
	}
	return nil
}

// expectNone returns an error if objects of a kind are left in a namespace; the error names one of them and its
// finalizers.
func (c *Cluster) expectNone(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := ignoreUndefined(c.Admin.List(ctx, list, client.InNamespace(namespace))); err != nil {
		return fmt.Errorf("list every %s in %s: %w", kind.Kind, namespace, err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	left := list.Items[0]
	return fmt.Errorf("%s %s is still there, held by its finalizers %q", left.GetKind(), left.GetName(), left.GetFinalizers())
}

// ignoreUndefined ignores the errors about a kind whose definition a spec has removed.
func ignoreUndefined(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
