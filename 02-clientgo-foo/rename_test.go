package main

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

var _ = Describe("a change of spec.deploymentName", func() {
	It("keeps the serving Deployment until the new one has rolled out", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startController(testOptions(namespace))
		foo := newFoo(namespace, "renamed", "first")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)

		limit := refusePods(ctx, namespace)
		rename(ctx, foo, "second")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentStalled)
		rename(ctx, foo, "third")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentStalled)
		Consistently(deploymentNames).WithContext(ctx).WithArguments(namespace).WithTimeout(quietTime).WithPolling(pollInterval).
			Should(ContainElement("first"), "the first Deployment must stay while its pods are the only ones that serve, see removeRenamed in sync.go")
		Expect(getDeployment(ctx, namespace, "first")).To(HaveField("Status.AvailableReplicas", BeEquivalentTo(1)))

		Expect(cluster.Client.Delete(ctx, limit)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		expectDeployments(ctx, namespace, "third")
	}, SpecTimeout(specTimeout))

	It("can be undone before the new Deployment has rolled out", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startController(testOptions(namespace))
		foo := newFoo(namespace, "renamed", "first")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		first, err := getDeployment(ctx, namespace, "first")
		Expect(err).NotTo(HaveOccurred())

		refusePods(ctx, namespace)
		rename(ctx, foo, "second")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentStalled)
		rename(ctx, foo, "first")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		expectDeployments(ctx, namespace, "first")
		Expect(getDeployment(ctx, namespace, "first")).To(HaveField("UID", first.UID), "the Deployment that has been serving all along must stay")
	}, SpecTimeout(specTimeout))

	It("never deletes a Deployment whose owner reference was removed at the last moment", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		orphan := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
		runWith(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/deployments/first") {
					first, err := getDeployment(request.Context(), namespace, "first")
					if err == nil {
						err = cluster.Client.Patch(request.Context(), first, orphan)
					}
					if err != nil {
						return nil, err
					}
				}
				return next.RoundTrip(request)
			})
		}, testOptions(namespace))
		foo := newFoo(namespace, "renamed", "first")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)

		rename(ctx, foo, "second")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		Expect(getDeployment(ctx, namespace, "first")).To(And(HaveField("OwnerReferences", BeEmpty()), HaveField("DeletionTimestamp", BeNil())),
			"a Deployment whose owner reference a user has removed must stay, see removeDeployment in sync.go")
	}, SpecTimeout(specTimeout))
})

// refusePods makes the API server refuse to create pods of Foos in the namespace until the returned object is deleted.
func refusePods(ctx context.Context, namespace string) client.Object {
	GinkgoHelper()
	limit := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-pods"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			Max:  corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")},
		}}},
	}
	Expect(cluster.Client.Create(ctx, limit)).To(Succeed())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "trial-"},
		Spec:       newDeployment(newFoo(namespace, "trial", "trial")).Spec.Template.Spec,
	}
	pod.Spec.Containers[0].Image = "trial:1"
	Eventually(func() error { return cluster.Client.Create(ctx, pod.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).
		Should(Satisfy(apierrors.IsForbidden), "the API server must enforce the LimitRange")
	return limit
}

// expectDeployments waits until the namespace holds exactly these Deployments.
func expectDeployments(ctx context.Context, namespace string, names ...string) {
	GinkgoHelper()
	Eventually(deploymentNames).WithContext(ctx).WithArguments(namespace).WithTimeout(convergeTimeout).WithPolling(pollInterval).
		Should(ConsistOf(names), "Deployments of previous names must be deleted, see removeRenamed in sync.go")
}
