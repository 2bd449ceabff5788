package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

var _ = Describe("the defaults", func() {
	It("fill in the fields that a Foo leaves out", func(ctx SpecContext) {
		foo := newFoo(cluster.Namespace(ctx), "small", "small")
		foo.Spec.Replicas = 0 // omitted from the request
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		Expect(foo.Spec.Replicas).To(BeEquivalentTo(1), "see the markers in types.go")
		Expect(foo.Spec.Image).To(Equal("nginxinc/nginx-unprivileged:1.29.1"), "see the markers in types.go")
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the controller", func() {
	It("creates the Deployment, emits one event, and writes nothing after a restart", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		stop := startController(testOptions(namespace))
		foo := newFoo(namespace, "first", "web")
		foo.Spec.Replicas = 2
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		Expect(foo.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(foo.Status.Selector).To(Equal("app.kubernetes.io/instance=web,app.kubernetes.io/name=foo"))
		expectEvents(ctx, foo, eventSynced)

		stop()
		startController(testOptions(namespace))
		Consistently(func(g Gomega) {
			stored := &examplev1alpha1.Foo{}
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(foo), stored)).To(Succeed())
			g.Expect(stored.ResourceVersion).To(Equal(foo.ResourceVersion), "a restart must change nothing")
		}).WithContext(ctx).WithTimeout(quietTime).WithPolling(quietTime / 10).Should(Succeed())
		expectEvents(ctx, foo, eventSynced)
	}, SpecTimeout(specTimeout))

	It("undoes changes to its own fields and keeps the fields of others", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startController(testOptions(namespace))
		foo := newFoo(namespace, "changed", "changed")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)

		deployment, err := getDeployment(ctx, namespace, "changed")
		Expect(err).NotTo(HaveOccurred())
		change := client.RawPatch(types.StrategicMergePatchType, []byte(`{
			"metadata": {"annotations": {"note": "kept"}},
			"spec": {"replicas": 4, "minReadySeconds": 1, "template": {"spec": {"containers": [
				{"name": "foo", "image": "other:1"}, {"name": "sidecar", "image": "sidecar:1"}]}}}}`))
		Expect(cluster.Client.Patch(ctx, deployment, change)).To(Succeed())
		Eventually(func(g Gomega) {
			deployment, err := getDeployment(ctx, namespace, "changed")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "see setOwnedFields in deployment.go")
			containers := deployment.Spec.Template.Spec.Containers
			g.Expect(containers).To(ConsistOf(HaveField("Image", foo.Spec.Image), HaveField("Image", "sidecar:1")))
			g.Expect(deployment.Annotations).To(HaveKeyWithValue("note", "kept"))
			g.Expect(deployment.Spec.MinReadySeconds).To(BeEquivalentTo(1))
		}).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("leaves someone else's Deployment alone, and creates its own once that is deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startController(testOptions(namespace))
		conflicting := newDeployment(newFoo(namespace, "other", "taken"))
		conflicting.OwnerReferences = nil
		conflicting.Spec.Template.Spec.Containers[0].Image = "other:1"
		Expect(cluster.Client.Create(ctx, conflicting)).To(Succeed())
		foo := newFoo(namespace, "refused", "taken")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonErrResourceExists)
		expectEvents(ctx, foo, examplev1alpha1.ReasonErrResourceExists)
		Expect(getDeployment(ctx, namespace, "taken")).To(HaveField("Generation", conflicting.Generation), "a Deployment that the Foo does not control must be left alone")

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		expectEvents(ctx, foo, examplev1alpha1.ReasonErrResourceExists, eventSynced)
	}, SpecTimeout(specTimeout))

	It("follows a new deploymentName, and keeps the old Deployment while the new name is taken", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startController(testOptions(namespace))
		other := newFoo(namespace, "other", "second")
		foo := newFoo(namespace, "renamed", "first")
		Expect(cluster.Client.Create(ctx, other)).To(Succeed())
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed())
		expectReason(ctx, other, examplev1alpha1.ReasonDeploymentAvailable)
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)

		rename(ctx, foo, "second")
		expectReason(ctx, foo, examplev1alpha1.ReasonErrResourceExists)
		Expect(deploymentNames(ctx, namespace)).To(ConsistOf("first", "second"))

		rename(ctx, foo, "third")
		expectReason(ctx, foo, examplev1alpha1.ReasonDeploymentAvailable)
		expectDeployments(ctx, namespace, "second", "third")
	}, SpecTimeout(specTimeout))
})

func rename(ctx context.Context, foo *examplev1alpha1.Foo, deploymentName string) {
	GinkgoHelper()
	change := client.MergeFrom(foo.DeepCopy())
	foo.Spec.DeploymentName = deploymentName
	Expect(cluster.Client.Patch(ctx, foo, change)).To(Succeed())
}

func deploymentNames(ctx context.Context, namespace string) ([]string, error) {
	list := &appsv1.DeploymentList{}
	err := cluster.Client.List(ctx, list, client.InNamespace(namespace))
	var names []string
	for _, deployment := range list.Items {
		names = append(names, deployment.Name)
	}
	return names, err
}

// expectEvents waits until the events about the Foo have exactly these reasons, and none of them is repeated.
func expectEvents(ctx context.Context, foo *examplev1alpha1.Foo, reasons ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(cluster.Client.List(ctx, list, client.InNamespace(foo.Namespace))).To(Succeed())
		var found []string
		for _, event := range list.Items {
			if event.Regarding.UID == foo.UID {
				g.Expect(event.Series).To(BeNil(), "event %s is repeated, see announce in status.go", event.Reason)
				found = append(found, event.Reason)
			}
		}
		g.Expect(found).To(ConsistOf(reasons), "see announce in status.go")
	}).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}
