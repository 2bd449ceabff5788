package main

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// retag gives the only cluster in the namespace's account the owner tags of these Klusters, in place of the tags that
// it has, as `doctl kubernetes cluster update --tag` does.
func retag(namespace string, owners ...*klusterv1alpha1.Kluster) {
	GinkgoHelper()
	var tags []string
	for _, owner := range owners {
		tags = append(tags, ownerOf(owner).Tag())
	}
	found := clouds.of(namespace).Clusters()
	Expect(found).To(HaveLen(1))
	Expect(clouds.of(namespace).SetTags(found[0].ID, tags)).To(Succeed())
}

func annotate(ctx context.Context, kluster *klusterv1alpha1.Kluster, name, value string) {
	GinkgoHelper()
	change(ctx, kluster, func() { metav1.SetMetaDataAnnotation(&kluster.ObjectMeta, name, value) })
}

var _ = Describe("the cluster's ID", func() {
	It("is recorded in the metadata, with the account, and survives the loss of the status", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		id := kluster.Status.KlusterID
		Expect(kluster.Annotations).To(And(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, id),
			HaveKeyWithValue(klusterv1alpha1.ExternalAccountAnnotation, teamOf(namespace)), Not(HaveKey(klusterv1alpha1.CreatePendingAnnotation))))
		kluster.Status = klusterv1alpha1.KlusterStatus{}
		Expect(cluster.Client.Status().Update(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Status).To(And(HaveField("KlusterID", id), HaveField("Account", teamOf(namespace))))
		})
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("is recorded again when someone replaces the Kluster with a manifest without it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		kluster.Annotations = nil
		Expect(cluster.Client.Update(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Annotations).To(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, kluster.Status.KlusterID))
		})
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	DescribeTable("may be wrong when the Kluster is deleted: only its own cluster is deleted, even if someone has recorded", func(ctx SpecContext, id func(theirs *klusterv1alpha1.Kluster) string) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		theirs := create(ctx, namespace, "theirs")
		expectReason(ctx, theirs, klusterv1alpha1.ReasonRunning)
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		own := kluster.Status.KlusterID
		annotate(ctx, kluster, klusterv1alpha1.ExternalNameAnnotation, id(theirs))
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(account.Clusters()).NotTo(BeEmpty(), "another Kluster's cluster was deleted, see isHandedOver in compare.go")
			err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Kluster is still there (error: %v)", err)
		})
		Expect(account.Clusters()).To(ContainElement(HaveField("ID", theirs.Status.KlusterID)))
		Expect(account.Clusters()).NotTo(ContainElement(HaveField("ID", own)), "the Kluster's own cluster must be found by its tag, see findCluster in reconcile.go")
		expectReason(ctx, theirs, klusterv1alpha1.ReasonRunning)
	},
		Entry("the ID of another Kluster's cluster", func(theirs *klusterv1alpha1.Kluster) string { return theirs.Status.KlusterID }, SpecTimeout(specTimeout)),
		Entry("an ID that does not exist", func(*klusterv1alpha1.Kluster) string { return "0b5c0a52-0000-4000-8000-000000000003" }, SpecTimeout(specTimeout)),
	)
})

var _ = Describe("a cluster", func() {
	It("moves to another Kluster when someone changes its tag in the cloud, and the first Kluster gives it up", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		first := create(ctx, namespace, "first")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		id := first.Status.KlusterID
		second := newKluster(namespace, "second")
		second.Spec.Name = first.Spec.Name
		Expect(cluster.Client.Create(ctx, second)).To(Succeed())
		expectReason(ctx, second, klusterv1alpha1.ReasonNameTaken)

		retag(namespace, second)
		expectReason(ctx, second, klusterv1alpha1.ReasonRunning)
		Expect(second.Status.KlusterID).To(Equal(id))
		ready := expectReason(ctx, first, klusterv1alpha1.ReasonNotOwned)
		Expect(ready.Message).To(ContainSubstring(ownerOf(second).Tag()))
		change(ctx, first, func() { first.Spec.NodePools[0].Count = 3 })
		expectReason(ctx, first, klusterv1alpha1.ReasonNotOwned)
		expectGone(ctx, first)
		expectOneCluster(second)
		Expect(requests(account, http.MethodDelete)).To(BeEmpty())
		Expect(account.Clusters()[0].NodePools).To(ConsistOf(HaveField("Count", 1)), "the operator must change nothing for the first Kluster any more")
	}, SpecTimeout(specTimeout))

	It("is adopted by a Kluster that was restored from a backup, once the cluster has that Kluster's tag", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		lost := create(ctx, namespace, "shop")
		expectReason(ctx, lost, klusterv1alpha1.ReasonRunning)
		change(ctx, lost, func() { lost.Spec.DeletionPolicy = klusterv1alpha1.DeletionOrphan })
		expectDeleted(ctx, lost)

		restored := newKluster(namespace, "shop") // it gets the annotations and the spec from the backup, but a new UID and no status
		restored.Annotations = lost.Annotations
		Expect(cluster.Client.Create(ctx, restored)).To(Succeed())
		ready := expectReason(ctx, restored, klusterv1alpha1.ReasonNotOwned)
		Expect(ready.Message).To(And(ContainSubstring(ownerOf(lost).Tag()), ContainSubstring(ownerOf(restored).Tag())), "the message must say what to do")
		Expect(account.Effective("create cluster")).To(HaveLen(1), "no second cluster may be made")
		retag(namespace, restored)
		expectReason(ctx, restored, klusterv1alpha1.ReasonRunning)
		expectOneCluster(restored)
	}, SpecTimeout(specTimeout))

	DescribeTable("is left alone, even when its Kluster is deleted,", func(ctx SpecContext, owners func(own, other *klusterv1alpha1.Kluster) []*klusterv1alpha1.Kluster) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		other := newKluster(namespace, "other")
		other.UID = "0b5c0a52-0000-4000-8000-000000000002"
		retag(namespace, owners(kluster, other)...)
		expectReason(ctx, kluster, klusterv1alpha1.ReasonNotOwned)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonNotOwned)
		expectKept(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(BeEmpty(), "see notOurs in errors.go")
		retag(namespace, kluster)
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	},
		Entry("while it has no owner tag", func(_, _ *klusterv1alpha1.Kluster) []*klusterv1alpha1.Kluster { return nil }, SpecTimeout(specTimeout)),
		Entry("while two Klusters claim it", func(own, other *klusterv1alpha1.Kluster) []*klusterv1alpha1.Kluster {
			return []*klusterv1alpha1.Kluster{own, other}
		}, SpecTimeout(specTimeout)),
	)

	It("is kept when a Kluster with the deletion policy Orphan is deleted, even if the token is wrong", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectProtectedBy(ctx, namespace, "digitalocean", kluster)
		DeferCleanup(func() { Expect(account.Remove(kluster.Status.KlusterID)).To(Succeed()) })
		setToken(ctx, namespace, wrongToken)
		change(ctx, kluster, func() { kluster.Spec.DeletionPolicy = klusterv1alpha1.DeletionOrphan })
		expectDeleted(ctx, kluster)
		eventually(ctx, func(g Gomega) {
			g.Expect(eventsOf(ctx, g, kluster)).To(ContainElement(klusterv1alpha1.ReasonOrphaned))
		})
		expectProtectedBy(ctx, namespace, "digitalocean")
		Expect(account.Clusters()).To(ConsistOf(HaveField("ID", kluster.Status.KlusterID)))
		Expect(account.Effective("delete cluster")).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("a paused Kluster", func() {
	It("is left alone: its cluster is not created, changed or deleted", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Annotations = map[string]string{klusterv1alpha1.PausedAnnotation: "true"}
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonPaused)
		Expect(account.Journal()).To(BeEmpty(), "see reconcile in reconcile.go")
		annotate(ctx, kluster, klusterv1alpha1.PausedAnnotation, "false")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)

		annotate(ctx, kluster, klusterv1alpha1.PausedAnnotation, "true")
		change(ctx, kluster, func() { kluster.Spec.NodePools[0].Count = 2 })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonPaused)
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonPaused)
		expectKept(ctx, kluster)
		Expect(account.Clusters()[0].NodePools).To(ConsistOf(HaveField("Count", 1)))
		annotate(ctx, kluster, klusterv1alpha1.PausedAnnotation, "false")
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))
})
