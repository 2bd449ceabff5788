package controller_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

var _ = Describe("a Password", func() {
	It("gets a complete Secret", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "login")
		password.Spec.SecretName = "database"
		create(ctx, password)
		secret := expectReady(ctx, password)
		Expect(secret.Name).To(Equal("database"))
		Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
		Expect(secret.Labels).To(Equal(map[string]string{"app.kubernetes.io/managed-by": "password-operator"}))
		Expect(passwordIn(secret)).To(MatchRegexp(`^[0-9A-Za-z]{20}$`), "the password must meet the CRD's default policy")
		Expect(secret.Data).To(And(HaveLen(2), HaveKeyWithValue("fingerprint-key", HaveLen(26))))
		Expect(secret.Annotations).To(And(HaveLen(3), HaveKeyWithValue("secret.example.com/policy", "length=20 digits=5 symbols=0 case=Mixed repeat=Allowed")))
		Expect(secret.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "secret.example.com/v1", Kind: "Password", Name: password.Name, UID: password.UID, Controller: new(true), BlockOwnerDeletion: new(false),
		}))
		Expect(password.Status.LastRotated.UTC().Format("2006-01-02T15:04:05Z")).To(Equal(secret.Annotations["secret.example.com/rotated-at"]))
		Expect(password.Status.NextRotation).To(BeNil(), "the status must announce no rotation, because the spec has none")
		Expect(password.Finalizers).To(BeEmpty(), "the operator needs no finalizer, because the garbage collector removes the Secret")
		expectEvents(ctx, password, "Normal Generated")

		Expect(cluster.Client.Delete(ctx, password)).To(Succeed())
		expectGone(ctx, secret)
	}, SpecTimeout(specTimeout))

	It("without secretName gets a Secret of the same name, with or without webhooks", func(ctx SpecContext) {
		asked, unasked := cluster.Namespace(ctx), namespaceWithoutWebhooks(ctx)
		startManager(cluster.Config, testOptions(asked, unasked))
		with, without := newPassword(asked, "nameless"), newPassword(unasked, "nameless")
		create(ctx, with, without)
		Expect(with.Spec.SecretName).To(Equal("nameless"), "see PasswordCustomDefaulter in internal/webhook/v1/password_webhook.go")
		Expect(without.Spec.SecretName).To(BeEmpty())
		for _, password := range []*secretv1.Password{with, without} {
			Expect(expectReady(ctx, password).Name).To(Equal("nameless"), "see EffectiveSecretName in api/v1/password_types.go")
		}
	}, SpecTimeout(specTimeout))

	It("may have a generated name", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := &secretv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "made-"}}
		create(ctx, password)
		Expect(password.Spec.SecretName).To(BeEmpty(), "the name is generated after the defaulting webhook is called")
		secret := expectReady(ctx, password)
		Expect(secret.Name).To(Equal(password.Name))

		patch(ctx, password, `{"spec":{"rotation":{"after":"1h"}}}`) // this calls the webhook again
		Expect(password.Spec.SecretName).To(Equal(password.Name))
		Expect(passwordIn(expectReady(ctx, password))).To(Equal(passwordIn(secret)))
		expectEvents(ctx, password, "Normal Generated")
	}, SpecTimeout(specTimeout))

	It("can be used through the version v1alpha1", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		old := &secretv1alpha1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "old"}}
		old.Spec.Length, old.Spec.Digits, old.Spec.CaseSensitive = 16, new(int32(0)), new(false)
		create(ctx, old)
		password := newPassword(namespace, "old")
		secret := expectReady(ctx, password)
		Expect(passwordIn(secret)).To(MatchRegexp(`^[a-z]{16}$`))
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(old), old)).To(Succeed())
		Expect(secretv1.PasswordStatus(old.Status)).To(Equal(password.Status), "the status must be the same in both versions")

		patch(ctx, old, `{"spec":{"digits":16}}`)
		secret = expectReadyAgain(ctx, password, secret)
		Expect(passwordIn(secret)).To(MatchRegexp(`^[0-9]{16}$`))
		expectEvents(ctx, password, "Normal Generated", "Normal PolicyChanged")
	}, SpecTimeout(specTimeout))

	It("gets no new Secret while it is terminating", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "terminating")
		password.Finalizers = []string{blockingFinalizer}
		create(ctx, password)
		secret := expectReady(ctx, password)
		Expect(cluster.Client.Delete(ctx, password)).To(Succeed())
		Expect(cluster.Client.Delete(ctx, secret)).To(Succeed())
		consistently(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, secret)).To(BeFalse(), "the garbage collector would have to remove it again, see Reconcile in password_controller.go")
		})
		patch(ctx, password, `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, password)
	}, SpecTimeout(specTimeout))

	It("may be created again under the same name, and gets another password", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		former := newPassword(namespace, "again")
		create(ctx, former)
		left := expectReady(ctx, former)
		patch(ctx, left, `{"metadata":{"finalizers":[%q]}}`, blockingFinalizer)
		Expect(cluster.Client.Delete(ctx, former)).To(Succeed())
		expectGone(ctx, former)

		password := newPassword(namespace, "again")
		create(ctx, password)
		expectState(ctx, password, "Pending Replacing")
		Expect(problemOf(password)).To(ContainSubstring(`Secret "again"`))
		Expect(password.Status.Fingerprint).To(BeEmpty(), "the status must not have the fingerprint of the former Password's Secret")
		patch(ctx, left, `{"metadata":{"finalizers":null}}`)
		nudge(ctx, password)
		expectReadyAgain(ctx, password, left)
		expectEvents(ctx, password, "Normal Generated") // a terminating Secret is not a failure
	}, SpecTimeout(specTimeout))

	It("gets a password of its own even if fifty Passwords are created at the same time", func(ctx SpecContext) {
		const count = 50
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		var people sync.WaitGroup
		problems := make([]error, count)
		for i := range count {
			people.Go(func() { problems[i] = createAndLabel(ctx, newPassword(namespace, fmt.Sprintf("p-%d", i))) })
		}
		people.Wait()
		Expect(problems).To(HaveEach(BeNil()), "users should see no conflicts with the operator")
		found := map[string]string{}
		for i := range count {
			secret := expectReady(ctx, newPassword(namespace, fmt.Sprintf("p-%d", i)))
			Expect(found[passwordIn(secret)]).To(BeEmpty(), "Secret %s has another Password's password", secret.Name)
			found[passwordIn(secret)] = secret.Name
		}
	}, SpecTimeout(specTimeout))
})

// createAndLabel creates a Password, and labels it immediately, while the operator may be reconciling it.
func createAndLabel(ctx context.Context, password *secretv1.Password) error {
	if err := cluster.Client.Create(ctx, password); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	before := password.DeepCopy()
	password.Labels = map[string]string{"team": "shop"}
	if err := cluster.Client.Patch(ctx, password, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	return nil
}
