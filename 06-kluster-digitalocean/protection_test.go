package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// readSecret returns a Secret, or nil if it doesn't exist.
func readSecret(ctx context.Context, g Gomega, namespace, name string) *corev1.Secret {
	secret := &corev1.Secret{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Expect(err).NotTo(HaveOccurred())
	return secret
}

// expectProtectedBy waits until a token's Secret has the finalizers of exactly these Klusters.
func expectProtectedBy(ctx context.Context, namespace, name string, klusters ...*klusterv1alpha1.Kluster) {
	GinkgoHelper()
	finalizers := []string{}
	for _, kluster := range klusters {
		finalizers = append(finalizers, tokenFinalizer(kluster))
	}
	eventually(ctx, func(g Gomega) {
		g.Expect(readSecret(ctx, g, namespace, name)).To(HaveValue(HaveField("Finalizers", ConsistOf(finalizers))), "see protectSecret and unprotectSecrets in token.go")
	})
}

var _ = Describe("the token's Secret", func() {
	It("stays and works after its deletion, until the last Kluster that needs it is gone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		first, second := create(ctx, namespace, "first"), create(ctx, namespace, "second")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		expectReason(ctx, second, klusterv1alpha1.ReasonRunning)
		expectProtectedBy(ctx, namespace, "digitalocean", first, second)
		Expect(cluster.Client.Delete(ctx, readSecret(ctx, Default, namespace, "digitalocean"))).To(Succeed())

		change(ctx, first, func() { first.Spec.NodePools[0].Count = 2 })
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		Expect(first.Status.NodePools).To(ConsistOf(HaveField("Running", int32(2))), "the operator must still use the token")
		Expect(first.Status.Conditions).To(ContainElement(And(HaveField("Type", klusterv1alpha1.ConditionCredentialsReady),
			HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("deleted")))))
		late := create(ctx, namespace, "late")
		ready := expectReason(ctx, late, klusterv1alpha1.ReasonTokenMissing)
		Expect(ready.Message).To(ContainSubstring("deleted"), "no new cluster may depend on a Secret that is being deleted")

		expectGone(ctx, first)
		expectProtectedBy(ctx, namespace, "digitalocean", second)
		expectGone(ctx, second)
		eventually(ctx, func(g Gomega) {
			g.Expect(readSecret(ctx, g, namespace, "digitalocean")).To(BeNil(), "the Secret must go when no Kluster needs it, see unprotectSecrets in token.go")
		})
		expectGone(ctx, late)
	}, SpecTimeout(specTimeout))

	It("is released when the Kluster names another", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(kluster.Status.TokenSecret).To(Equal("digitalocean"))
		change(ctx, kluster, func() { kluster.Spec.TokenSecret.Name = "another" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(kluster.Status.TokenSecret).To(Equal("another"))
		expectProtectedBy(ctx, namespace, "another", kluster)
		expectProtectedBy(ctx, namespace, "digitalocean")
		expectGone(ctx, kluster)
		expectProtectedBy(ctx, namespace, "another")
	}, SpecTimeout(specTimeout))

	It("is released when the Kluster names another before its first status is written", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		begun, proceed := holdCreations(clouds.of(namespace))
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		Eventually(begun).WithContext(ctx).Should(Receive())
		expectProtectedBy(ctx, namespace, "digitalocean", kluster)
		change(ctx, kluster, func() { kluster.Spec.TokenSecret.Name = "another" })
		Expect(kluster.Status.TokenSecret).To(BeEmpty(), "the status must not name the first Secret yet")
		proceed()
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectProtectedBy(ctx, namespace, "another", kluster)
		expectProtectedBy(ctx, namespace, "digitalocean")
	}, SpecTimeout(specTimeout))

	It("stays protected while the Kluster names a missing one, and is released with the Kluster", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		change(ctx, kluster, func() { kluster.Spec.TokenSecret.Name = "missing" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenMissing)
		expectProtectedBy(ctx, namespace, "digitalocean", kluster)
		change(ctx, kluster, func() { kluster.Spec.TokenSecret.Name = "digitalocean" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectGone(ctx, kluster)
		expectProtectedBy(ctx, namespace, "digitalocean")
	}, SpecTimeout(specTimeout))

	It("is protected again after someone has removed the finalizer", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		secret := readSecret(ctx, Default, namespace, "digitalocean")
		secret.Finalizers = nil
		Expect(cluster.Client.Update(ctx, secret)).To(Succeed())
		expectProtectedBy(ctx, namespace, "digitalocean", kluster)
	}, SpecTimeout(specTimeout))

	It("is not protected before the cloud has accepted the token", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		setToken(ctx, namespace, wrongToken)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		expectProtectedBy(ctx, namespace, "digitalocean")
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))

	It("may already be gone when the operator dies: the next operator still knows that the cluster is gone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startAtEnd(namespace)
		runWith(dieAfterRelease(), testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(cluster.Client.Delete(ctx, readSecret(ctx, Default, namespace, "digitalocean"))).To(Succeed())
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) { g.Expect(readSecret(ctx, g, namespace, "digitalocean")).To(BeNil()) })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonDeleted)
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonDeleted)

		startOperator(testOptions(namespace))
		expectGone(ctx, kluster) // see isFinished in deletion.go
	}, SpecTimeout(specTimeout))

	It("must be protected before a cluster is created", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startAtEnd(namespace)
		stop, ended := runWith(refuseSecretPatches, testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonSecretRefused)
		Expect(ready.Message).To(And(ContainSubstring("finalizer"), ContainSubstring(`"digitalocean"`)))
		Expect(clouds.of(namespace).Clusters()).To(BeEmpty())
		stop()
		Eventually(ended).WithContext(ctx).Should(Receive(BeNil()))
	}, SpecTimeout(specTimeout))
})

// refuseSecretPatches responds like an API server with a policy that forbids patching Secrets.
func refuseSecretPatches(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/secrets/") {
			return next.RoundTrip(request)
		}
		refusal := apierrors.NewForbidden(corev1.Resource("secrets"), "digitalocean", nil).Status()
		refusal.Kind, refusal.APIVersion = "Status", "v1"
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewBufferString(asJSON(refusal))), Request: request,
		}, nil
	})
}

// dieAfterRelease makes all requests fail after the one that removes a finalizer from a Secret, as if the operator had
// died.
func dieAfterRelease() func(http.RoundTripper) http.RoundTripper {
	var dead atomic.Bool
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if dead.Load() {
				return nil, errors.New("the operator is dead")
			}
			released := false
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/secrets/") {
				content, err := io.ReadAll(request.Body)
				if err != nil {
					return nil, err
				}
				request.Body = io.NopCloser(bytes.NewReader(content))
				released = bytes.Contains(content, []byte("deleteFromPrimitiveList"))
			}
			response, err := next.RoundTrip(request)
			dead.Store(released || dead.Load())
			return response, err
		})
	}
}

// terminating is a namespace that is deleted before the first spec, or "" if specs are chosen by label. The namespace
// contains a Kluster with a running cluster. Kubernetes takes more than ten seconds to empty a namespace in which
// objects have finalizers, so the last spec checks whether the namespace is gone.
var terminating string

// terminateNamespace creates the namespace, waits until the cluster of its Kluster is running, and deletes the
// namespace.
func terminateNamespace(ctx context.Context) {
	GinkgoHelper()
	terminating = newNamespace(ctx)
	startOperator(testOptions(terminating))
	expectReason(ctx, create(ctx, terminating, "shop"), klusterv1alpha1.ReasonRunning)
	Expect(cluster.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: terminating}})).To(Succeed())
}

var _ = Describe("a namespace that is deleted", SpecPriority(-1), func() {
	It("is removed only after the clusters of its Klusters, although their token is deleted as well", func(ctx SpecContext) {
		if terminating == "" {
			Skip("no namespace was deleted before the first spec, see BeforeSuite in suite_test.go")
		}
		Eventually(func(g Gomega) {
			found := &corev1.Namespace{}
			err := cluster.Client.Get(ctx, client.ObjectKey{Name: terminating}, found)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the namespace is still there, with the conditions %v, see token.go", found.Status.Conditions)
		}).WithContext(ctx).WithTimeout(specTimeout).WithPolling(checkInterval).Should(Succeed())
		account := clouds.of(terminating)
		Expect(account.Clusters()).To(BeEmpty(), "a cluster without a Kluster still costs money")
		Expect(account.Effective("create cluster")).To(HaveLen(1))
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout+convergeTimeout))
})
