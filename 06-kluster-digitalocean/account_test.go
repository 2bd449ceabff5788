package main

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// strangersAccount returns an account that is unrelated to the Klusters of a namespace, and its token.
func strangersAccount(namespace string) (account *doks.Emulator, token string) {
	name := accountName(namespace, "stranger")
	return clouds.of(name), tokenFor(name)
}

// expectCredentials waits until the Ready condition has the reason, and checks that CredentialsReady is False with the
// same reason. It returns the Ready condition.
func expectCredentials(ctx context.Context, kluster *klusterv1alpha1.Kluster, reason string) *metav1.Condition {
	GinkgoHelper()
	ready := expectReason(ctx, kluster, reason)
	expectCondition(kluster, klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, reason)
	return ready
}

// expectKept checks for a while that a Kluster which is being deleted still exists, and then that its cluster does.
func expectKept(ctx context.Context, kluster *klusterv1alpha1.Kluster) {
	GinkgoHelper()
	consistently(ctx, func(g Gomega) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed(), "the Kluster must stay until its cluster is gone")
	})
	Expect(clouds.of(kluster.Namespace).Clusters()).To(HaveLen(1))
}

var _ = Describe("the cloud's account", func() {
	It("is the one in which the cluster was created: a token of another account is reported, not used", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		theirs, theirToken := strangersAccount(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(kluster.Status.Account).To(Equal(teamOf(namespace)))
		before := kluster.Status

		setToken(ctx, namespace, theirToken)
		ready := expectCredentials(ctx, kluster, klusterv1alpha1.ReasonAnotherAccount)
		Expect(ready.Message).To(And(ContainSubstring(teamOf(namespace)), ContainSubstring(teamOf(accountName(namespace, "stranger")))))
		Expect(kluster.Status).To(And(HaveField("Account", before.Account), HaveField("KlusterID", before.KlusterID)))
		Expect(requests(theirs, http.MethodGet)).To(HaveEach(HaveField("Path", "/v2/account")), "in another account, the operator must ask for nothing but the account's identity")
		Expect(requests(theirs, http.MethodPost)).To(BeEmpty())

		setToken(ctx, namespace, tokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectCondition(kluster, klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, klusterv1alpha1.ReasonTokenAccepted)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("is waited for when the token is swapped before a deletion", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		_, theirToken := strangersAccount(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		setToken(ctx, namespace, theirToken)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectCredentials(ctx, kluster, klusterv1alpha1.ReasonAnotherAccount)
		expectKept(ctx, kluster)

		setToken(ctx, namespace, tokenFor(namespace))
		expectGone(ctx, kluster)
		Expect(clouds.of(namespace).Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("is needed for a deletion even if no ID is known", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		_, theirToken := strangersAccount(namespace)
		disturb(account, creating(doks.FaultDrop, true), lagging(time.Hour))
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonNameTaken) // the Kluster's own cluster has the name, but the list does not show it
		Expect(kluster.Status.KlusterID).To(BeEmpty())
		setToken(ctx, namespace, theirToken)
		expectCredentials(ctx, kluster, klusterv1alpha1.ReasonAnotherAccount)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectKept(ctx, kluster)

		account.ClearFaults()
		setToken(ctx, namespace, tokenFor(namespace))
		expectGone(ctx, kluster)
		Expect(account.Effective("create cluster")).To(HaveLen(1))
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("must be known: with a token that can't read it, no cluster is created and no deletion ends", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		setToken(ctx, namespace, clusterTokenFor(namespace))
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		ready := expectCredentials(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		Expect(ready.Message).To(ContainSubstring("needs the scope account:read"), "see Identity in digitalocean.go")
		Expect(account.Journal()).To(HaveEach(HaveField("Path", "/v2/account")))

		setToken(ctx, namespace, tokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		setToken(ctx, namespace, clusterTokenFor(namespace))
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectCredentials(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		expectKept(ctx, kluster)
		setToken(ctx, namespace, tokenFor(namespace))
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))

	It("is looked up only once for each token", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		setToken(ctx, namespace, tokenFor(namespace)+"\n")
		looks := len(account.Journal())
		eventually(ctx, func(g Gomega) { g.Expect(len(account.Journal())).To(BeNumerically(">", looks+1)) })
		var asked []doks.Entry
		for _, entry := range account.Journal() {
			if entry.Operation == "get account" {
				asked = append(asked, entry)
			}
		}
		Expect(asked).To(HaveLen(1), "the operator must ask only once which account a token belongs to, because requests are limited: see knownAccount in cloud.go")
	}, SpecTimeout(specTimeout))
})
