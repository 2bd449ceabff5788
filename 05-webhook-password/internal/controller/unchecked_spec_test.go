package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

var _ = Describe("an unchecked Password", func() {
	It("with a rotation after a nanosecond is rotated only once a minute", func(ctx SpecContext) {
		namespace := namespaceWithoutWebhooks(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := createUnchecked(ctx, namespace, "hurried", `{"policy":{"length":20,"require":[{"class":"Digit","count":5}],"case":"Mixed","repeat":"Allowed"},"rotation":{"after":"1ns"}}`)
		secret := expectReady(ctx, password)
		Expect(password.Spec.Rotation.After).To(Equal("1ns"), "the API server stores the result of the conversion unchecked")
		Expect(password.Status.NextRotation.Sub(password.Status.LastRotated.Time)).To(Equal(time.Minute), "see EffectiveAfter in api/v1/password_validation.go")
		consistently(ctx, func(g Gomega) {
			g.Expect(getSecret(ctx, g, namespace, "hurried").ResourceVersion).To(Equal(secret.ResourceVersion))
		})
		expectEvents(ctx, password, "Normal Generated")
	}, SpecTimeout(specTimeout))

	for name, spec := range map[string]string{
		"no-name":  `{"secretName":"NOT/a name"}`,
		"no-class": `{"policy":{"length":20,"require":[{"class":"Digit","count":5},{"class":"Other","count":-7}],"case":"Mixed","repeat":"Allowed"}}`,
	} {
		It("is reported if its spec can't be met, and not retried: "+name, func(ctx SpecContext) {
			namespace := namespaceWithoutWebhooks(ctx)
			startManager(cluster.Config, testOptions(namespace))
			password := createUnchecked(ctx, namespace, name, spec)
			expectState(ctx, password, "Failed Impossible")
			expectRest(ctx)
			expectEvents(ctx, password, "Warning Impossible")
		}, SpecTimeout(specTimeout))
	}

	It("keeps its Secret if it names another one, and reports what to do", func(ctx SpecContext) {
		namespace := namespaceWithoutWebhooks(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "renamed")
		password.Spec.SecretName = "former"
		create(ctx, password)
		former := expectReady(ctx, password)
		patch(ctx, password, `{"spec":{"secretName":"other"}}`)
		expectState(ctx, password, "Failed NameChanged")
		Expect(problemOf(password)).To(And(ContainSubstring(`"former"`), ContainSubstring(`"other"`)), "the message should contain the names of both Secrets")
		Expect(password.Status.SecretName).To(Equal("former"))
		Expect(password.Status.Fingerprint).To(Equal(former.Annotations["secret.example.com/fingerprint"]), "the status must have the fingerprint of the password in the Secret")
		expectRest(ctx)
		Expect(getSecret(ctx, Default, namespace, "former").ResourceVersion).To(Equal(former.ResourceVersion), "the Secret must stay as it is, because programs still read it")

		patch(ctx, password, `{"spec":{"secretName":"former"}}`)
		Expect(expectReady(ctx, password).ResourceVersion).To(Equal(former.ResourceVersion))
		patch(ctx, password, `{"spec":{"secretName":"other"}}`)
		expectState(ctx, password, "Failed NameChanged")
		Expect(cluster.Client.Delete(ctx, former)).To(Succeed())
		Expect(expectReadyAgain(ctx, password, former).Name).To(Equal("other"), "the deletion of the former Secret causes an event")
		expectEvents(ctx, password, "Normal Generated", "Warning NameChanged", "Warning NameChanged", "Normal Generated")
	}, SpecTimeout(specTimeout))
})

// createUnchecked creates a Password in v1alpha1 whose annotation holds a spec of v1, which no schema checks.
func createUnchecked(ctx context.Context, namespace, name, spec string) *secretv1.Password {
	GinkgoHelper()
	object := &secretv1alpha1.Password{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{"secret.example.com/v1-spec": spec},
	}}
	create(ctx, object)
	return newPassword(namespace, name)
}
