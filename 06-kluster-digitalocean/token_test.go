package main

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

var _ = Describe("the token", func() {
	It("may be missing, empty, wrong or read-only at first: the operator waits for the right one", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectMissing := func(reason string) {
			GinkgoHelper()
			expectReason(ctx, kluster, reason)
			expectCondition(kluster, klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, reason)
		}
		expectMissing(klusterv1alpha1.ReasonTokenMissing)
		missing := expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenMissing).Message
		setToken(ctx, namespace, " \n")
		eventually(ctx, func(g Gomega) {
			g.Expect(expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenMissing).Message).NotTo(Equal(missing), "now there is a Secret, but no token in it")
		})
		Expect(account.Journal()).To(BeEmpty(), "without a token, the operator must send no request")

		setToken(ctx, namespace, wrongToken)
		expectMissing(klusterv1alpha1.ReasonTokenRejected)
		setToken(ctx, namespace, readOnlyTokenFor(namespace))
		eventually(ctx, func(g Gomega) {
			g.Expect(requests(account, http.MethodPost)).NotTo(BeEmpty(), "with a read-only token, the operator finds no cluster, and tries to create one")
		})
		expectMissing(klusterv1alpha1.ReasonTokenRejected)
		Expect(account.Clusters()).To(BeEmpty())

		setToken(ctx, namespace, tokenFor(namespace)+"\n") // a file for --from-file often ends like this
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectCondition(kluster, klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, klusterv1alpha1.ReasonTokenAccepted)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("is tried as soon as it is corrected, even if the operator would otherwise wait an hour", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		setToken(ctx, namespace, wrongToken)
		options := testOptions(namespace)
		options.retryInterval = time.Hour
		startOperator(options)
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		setToken(ctx, namespace, tokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("is not taken from a Secret of another type: any password could otherwise be sent to the cloud", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		password := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "database"},
			Data:       map[string][]byte{"token": []byte(tokenFor(namespace))},
		}
		Expect(cluster.Client.Create(ctx, password)).To(Succeed())
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Spec.TokenSecret.Name = "database"
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		ready := expectCredentials(ctx, kluster, klusterv1alpha1.ReasonTokenNotAllowed)
		Expect(ready.Message).To(ContainSubstring("inspirit941.dev/cloud-token"))
		Expect(clouds.of(namespace).Journal()).To(BeEmpty(), "see readToken in token.go")
		expectProtectedBy(ctx, namespace, "database")

		change(ctx, kluster, func() { kluster.Spec.TokenSecret.Name = "digitalocean" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("is read again in each reconcile: a revoked one is reported, and the next one is used", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		id := kluster.Status.KlusterID

		setToken(ctx, namespace, wrongToken)
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		Expect(kluster.Status.KlusterID).To(Equal(id), "fields that the operator can't observe must keep their values")
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
		setToken(ctx, namespace, tokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))
})
