package controller_test

import (
	"encoding/base64"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

var _ = Describe("a change", func() {
	It("of the policy leads to a new password, unless the new policy means the same", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "worded")
		password.Spec.Policy.Require = []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: new(int32(4))}, {Class: secretv1.ClassSymbol, Count: new(int32(3))}}
		create(ctx, password)
		first := expectReady(ctx, password)
		for _, require := range []string{
			`[{"class":"Symbol","count":3},{"class":"Digit","count":4}]`,
			`[{"class":"Digit","count":4},{"class":"Symbol","count":3}]`,
		} {
			patch(ctx, password, `{"spec":{"policy":{"require":%s}}}`, require)
			Expect(expectReady(ctx, password).ResourceVersion).To(Equal(first.ResourceVersion), "the order has no meaning, see Describe in internal/generator/generator.go")
		}

		patch(ctx, password, `{"spec":{"policy":{"require":[{"class":"Digit","count":4}]}}}`)
		second := expectReadyAgain(ctx, password, first)
		Expect(passwordIn(second)).To(MatchRegexp(`^[0-9A-Za-z]{20}$`))
		patch(ctx, password, `{"spec":{"policy":{"require":[{"class":"Symbol","count":0},{"class":"Digit","count":4}]}}}`)
		Expect(expectReady(ctx, password).ResourceVersion).To(Equal(second.ResourceVersion), "a count of 0 means the same as no element")
		expectEvents(ctx, password, "Normal Generated", "Normal PolicyChanged")
	}, SpecTimeout(specTimeout))

	It("of the password or its annotations by hand leads to a new random password", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "edited")
		create(ctx, password)
		before := expectReady(ctx, password)
		events := []string{"Normal Generated"}
		for _, edit := range []string{
			`{"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte("chosen-by-hand")) + `"}}`,
			`{"data":{"password":null,"fingerprint-key":null}}`,
			`{"data":null}`,
			`{"metadata":{"annotations":{"secret.example.com/rotated-at":"2100-01-01T00:00:00Z"}}}`,
			`{"metadata":{"annotations":null,"labels":null}}`,
		} {
			patch(ctx, before.DeepCopy(), "%s", edit)
			after := expectReadyAgain(ctx, password, before)
			Expect(passwordIn(after)).NotTo(Equal("chosen-by-hand"), "see signedAt in signature.go")
			Expect(after.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "password-operator"))
			events = append(events, "Warning Edited")
			expectEvents(ctx, password, events...)
			before = after
		}
	}, SpecTimeout(specTimeout))

	It("of other parts of the Secret leads to no new password, and stays unless it removes the operator's label", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "shared")
		create(ctx, password)
		before := expectReady(ctx, password)
		patch(ctx, before.DeepCopy(), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null,"team":"shop"},"annotations":{"note":"theirs"}},"data":{"user":"c2hvcA=="}}`)
		eventually(ctx, func(g Gomega) {
			after := getSecret(ctx, g, namespace, "shared")
			g.Expect(after.Labels).To(Equal(map[string]string{"app.kubernetes.io/managed-by": "password-operator", "team": "shop"}), "see patchSecret in secret.go")
			data, annotations := maps.Clone(before.Data), maps.Clone(before.Annotations)
			data["user"], annotations["note"] = []byte("shop"), "theirs"
			g.Expect(after.Data).To(Equal(data))
			g.Expect(after.Annotations).To(Equal(annotations))
		})
		patch(ctx, password, `{"spec":{"policy":{"length":32}}}`)
		after := expectReadyAgain(ctx, password, before)
		Expect(after.Data).To(HaveKeyWithValue("user", []byte("shop")))
		Expect(after.Labels).To(HaveKeyWithValue("team", "shop"))
		Expect(after.Annotations).To(HaveKeyWithValue("note", "theirs"))
		expectEvents(ctx, password, "Normal Generated", "Normal PolicyChanged")
	}, SpecTimeout(specTimeout))

	It("that deletes the Secret leads to a new one, with a new password", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "deleted")
		create(ctx, password)
		before, after := &corev1.Secret{}, &corev1.Secret{}
		eventually(ctx, func(g Gomega) { before = getSecret(ctx, g, namespace, "deleted") })
		Expect(cluster.Client.Delete(ctx, before)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			after.Namespace, after.Name = namespace, "deleted"
			g.Expect(exists(ctx, g, after)).To(BeTrue(), "the deletion of the Secret should queue the Password, see SetupWithManager in password_controller.go")
			g.Expect(after.UID).NotTo(Equal(before.UID))
		})
		Expect(passwordIn(after)).NotTo(Equal(passwordIn(before)), "the former password must not be reused")
		expectEvents(ctx, password, "Normal Generated", "Normal Generated")
	}, SpecTimeout(specTimeout))
})
