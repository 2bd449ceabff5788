package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// controller-runtime's metrics, which cover all managers in the process.
const (
	reconciles      = "controller_runtime_reconcile_total"
	reconcileErrors = "controller_runtime_reconcile_errors_total"
	terminalErrors  = "controller_runtime_terminal_reconcile_errors_total"
)

var _ = Describe("a Password is blocked by", func() {
	It("someone else's Secret, which the operator leaves alone", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		stop := startManager(cluster.Config, testOptions(namespace))
		owner := newPassword(namespace, "owner")
		create(ctx, owner)
		others := othersSecrets(namespace, expectReady(ctx, owner))
		passwords := map[string]*secretv1.Password{}
		for name, secret := range others {
			if secret.ResourceVersion == "" {
				create(ctx, secret)
			}
			passwords[name] = newPassword(namespace, name)
			passwords[name].Spec.SecretName = secret.Name
			create(ctx, passwords[name])
		}
		for name, password := range passwords {
			expectState(ctx, password, "Failed NameTaken")
			Expect(problemOf(password)).To(HavePrefix(`Secret "` + others[name].Name + `" exists and is not managed by this Password: delete it`))
			Expect(password.Status.Fingerprint+password.Status.SecretName).To(BeEmpty(), "the status must describe no Secret, because the Password has none")
			expectEvents(ctx, password, "Warning NameTaken")
		}
		stop()
		before := count(reconciles)
		startManager(cluster.Config, testOptions(namespace))
		eventually(ctx, func(g Gomega) {
			g.Expect(count(reconciles)-before).To(BeNumerically(">=", len(others)+1), "the operator must reconcile each Password again after its restart")
		})
		for name, password := range passwords {
			expectEvents(ctx, password, "Warning NameTaken")
			found := getSecret(ctx, Default, namespace, others[name].Name)
			Expect(found.ResourceVersion).To(Equal(others[name].ResourceVersion), "the operator must not change the Secret that is %s, see findBlocker in secret.go", name)
			Expect(found.Data).To(Equal(others[name].Data))
		}

		Expect(cluster.Client.Delete(ctx, owner)).To(Succeed(), "the garbage collector then deletes its Secret")
		for _, secret := range others {
			Expect(client.IgnoreNotFound(cluster.Client.Delete(ctx, secret))).To(Succeed())
		}
		for name, password := range passwords {
			expectReadyAgain(ctx, password, others[name]) // no event announces this (see requeueBlocked in password_controller.go)
			expectEvents(ctx, password, "Warning NameTaken", "Normal Generated")
		}
	}, SpecTimeout(specTimeout))

	It("a policy that no password can meet, which is not retried", func(ctx SpecContext) {
		namespace := namespaceWithoutWebhooks(ctx)
		startManager(cluster.Config, testOptions(namespace))
		terminal := count(terminalErrors)
		password := newImpossible(namespace, "impossible")
		create(ctx, password)
		expectState(ctx, password, "Failed Impossible")
		Expect(problemOf(password)).To(Equal("spec.policy.length: Invalid value: 128: leaves 123 characters for letters, but there are only 52, and none may repeat"))
		Expect(password.Status.SecretName).To(BeEmpty())
		expectRest(ctx)
		Expect(count(terminalErrors)-terminal).To(And(BeNumerically(">=", 1), BeNumerically("<=", 2)), "Reconcile must return a terminal error for the new spec, and may return another after its own change of the status, see requeueBlocked in password_controller.go")
		patch(ctx, password, `{"spec":{"policy":{"length":126}}}`)
		expectState(ctx, password, "Failed Impossible")
		expectEvents(ctx, password, "Warning Impossible") // the reason is the same

		patch(ctx, password, `{"spec":{"policy":{"length":20}}}`)
		before := expectReady(ctx, password)
		patch(ctx, password, `{"spec":{"policy":{"length":127}}}`)
		expectState(ctx, password, "Failed Impossible")
		Expect(getSecret(ctx, Default, namespace, "impossible").ResourceVersion).To(Equal(before.ResourceVersion), "the former password must stay, because programs still use it")
		Expect(password.Status.SecretName).To(Equal("impossible"))
		Expect(password.Status.Fingerprint).To(Equal(before.Annotations["secret.example.com/fingerprint"]), "the status must have the fingerprint of the password in the Secret")

		patch(ctx, password, `{"spec":{"policy":{"length":20}}}`)
		Expect(expectReady(ctx, password).ResourceVersion).To(Equal(before.ResourceVersion), "the password must stay, because it meets the policy again")
		patch(ctx, password, `{"spec":{"policy":{"length":21}}}`)
		expectReadyAgain(ctx, password, before)
		expectEvents(ctx, password, "Warning Impossible", "Normal Generated", "Warning Impossible", "Normal PolicyChanged")
	}, SpecTimeout(specTimeout))

	It("a quota, which is retried", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		quota := limitSecrets(ctx, namespace)
		password := newPassword(namespace, "refused")
		create(ctx, password)
		expectState(ctx, password, "Failed Refused")
		Expect(problemOf(password)).To(ContainSubstring("exceeded quota"), "users need the API server's message")
		expectEvents(ctx, password, "Warning Refused")

		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		expectReady(ctx, password)
		expectEvents(ctx, password, "Warning Refused", "Normal Generated")
	}, SpecTimeout(specTimeout))

	It("its own Secret, if someone has made it immutable", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "frozen")
		create(ctx, password)
		before := expectReady(ctx, password)
		patch(ctx, before.DeepCopy(), `{"immutable":true}`)
		nudge(ctx, password)
		patch(ctx, password, `{"spec":{"policy":{"length":30}}}`)
		expectState(ctx, password, "Failed Refused")
		Expect(problemOf(password)).To(ContainSubstring("field is immutable when `immutable` is set"))
		Expect(passwordIn(getSecret(ctx, Default, namespace, "frozen"))).To(Equal(passwordIn(before)))
		Expect(password.Status.Fingerprint).To(Equal(before.Annotations["secret.example.com/fingerprint"]), "the status must have the fingerprint of the password in the Secret")

		Expect(cluster.Client.Delete(ctx, before)).To(Succeed())
		expectReadyAgain(ctx, password, before)
		expectEvents(ctx, password, "Normal Generated", "Warning Refused", "Normal Generated")
	}, SpecTimeout(specTimeout))
})

// othersSecrets returns Secrets that a new Password must not take over. The keys say what distinguishes them. One of
// them, the argument owned, already exists and belongs to another Password; the others don't exist yet.
func othersSecrets(namespace string, owned *corev1.Secret) map[string]*corev1.Secret {
	secret := func(name string, labels map[string]string, owners []metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs-" + name, Labels: labels, OwnerReferences: owners},
			Data:       map[string][]byte{"password": []byte("chosen-by-hand")},
		}
	}
	copied := secret("copied", owned.Labels, nil)
	copied.Data, copied.Annotations = owned.Data, owned.Annotations
	return map[string]*corev1.Secret{
		"unlabelled": secret("unlabelled", nil, nil),
		"labelled":   secret("labelled", owned.Labels, nil),
		"copied":     copied,
		"controlled": secret("controlled", nil, owned.OwnerReferences),
		"owned":      owned,
	}
}

// limitSecrets creates a quota that allows no Secrets, and returns it once the quota controller has counted the
// existing Secrets.
func limitSecrets(ctx context.Context, namespace string) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limit"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}},
	}
	create(ctx, quota)
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, quota)).To(BeTrue())
		g.Expect(quota.Status.Used).To(HaveKey(corev1.ResourceName("count/secrets")), "the quota controller has not counted yet")
	})
	return quota
}

// expectRest waits until no operator in this process reconciles anything for a while.
func expectRest(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		before := count(reconciles)
		g.Consistently(func() float64 { return count(reconciles) }).WithContext(ctx).
			WithTimeout(quietTime).WithPolling(pollInterval).Should(Equal(before), "the operator keeps reconciling")
	})
}

// count returns the sum of a counter over all its labels.
func count(counter string) (sum float64) {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != counter {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}
