package v1_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

// No admission applies in the namespace byNone, so the API server changes a spec only by converting it and by
// filling in the schema's defaults.
var _ = Describe("the conversion of a Password", func() {
	It("turns v1alpha1 into v1", func(ctx SpecContext) {
		created := alpha("from-alpha", 24, 4, 2, alphaOnce, alphaLower)
		created.Namespace = byNone
		createAndForget(ctx, created)

		var read secretv1.Password
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(created), &read)).To(Succeed())
		Expect(read.Spec).To(Equal(password("", policy(24, 4, 2), lower, once).Spec))
		table, err := env.Kubectl(ctx, "get", "passwords.v1alpha1.secret.example.com", "-n", byNone, "from-alpha", "--no-headers")
		Expect(err).NotTo(HaveOccurred())
		Expect(table).To(HavePrefix("from-alpha"))
		form, err := env.Kubectl(ctx, "get", "passwords.v1alpha1.secret.example.com", "-n", byNone, "from-alpha", "-o", "jsonpath={.spec.digits} {.spec.disallowRepeat}")
		Expect(err).NotTo(HaveOccurred())
		Expect(form).To(Equal("4 true"))
	}, SpecTimeout(waitTimeout))

	It("keeps a count of 0 digits instead of the default", func(ctx SpecContext) {
		created := alpha("letters", 24, 0, 0)
		created.Namespace = byNone
		createAndForget(ctx, created)
		var read secretv1.Password
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(created), &read)).To(Succeed())
		Expect(read.Spec.Policy.Require).To(BeEmpty(), "the API server would fill in the default, 5 digits, if the converted object had no list")
	}, SpecTimeout(waitTimeout))

	It("keeps an empty list of requirements when a client writes v1alpha1", func(ctx SpecContext) {
		hub := password("no-requirement", secretName("login"))
		hub.Namespace = byNone
		createAndForget(ctx, hub)
		Expect(env.Client.Patch(ctx, hub, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policy":{"require":[]}}}`)))).To(Succeed())
		patchAlpha(ctx, hub, `{"metadata":{"labels":{"team":"red"}}}`)
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(hub), hub)).To(Succeed())
		Expect(hub.Spec.Policy.Require).To(BeEmpty())
		Expect(hub.Spec.SecretName).To(Equal("login"))
	}, SpecTimeout(waitTimeout))

	It("keeps the status", func(ctx SpecContext) {
		hub := password("with-status")
		hub.Namespace = byNone
		createAndForget(ctx, hub)
		hub.Status = secretv1.PasswordStatus{
			State: secretv1.StateReady, ObservedGeneration: 1, SecretName: "with-status", Fingerprint: "abc",
			LastRotated: new(metav1.Unix(1700000000, 0)), NextRotation: new(metav1.Unix(1800000000, 0)),
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Generated", LastTransitionTime: metav1.Unix(1700000000, 0)}},
		}
		Expect(env.Client.Status().Update(ctx, hub)).To(Succeed())
		var spoke secretv1alpha1.Password
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(hub), &spoke)).To(Succeed())
		Expect(secretv1.PasswordStatus(spoke.Status)).To(Equal(hub.Status))
	}, SpecTimeout(waitTimeout))

	It("keeps secretName and rotation when v1alpha1 is patched, and the policy when v1 is patched", func(ctx SpecContext) {
		hub := password("patched", secretName("login"), symbolsFirst(24, 2, 4), rotation)
		hub.Namespace = byNone
		createAndForget(ctx, hub)

		patchAlpha(ctx, hub, `{"spec":{"length":25}}`)
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(hub), hub)).To(Succeed())
		Expect(hub.Spec.Policy.Length).To(BeEquivalentTo(25))
		Expect(hub.Spec.SecretName).To(Equal("login"))
		Expect(hub.Spec.Rotation).To(HaveValue(HaveField("After", "1h0m0s")))

		Expect(env.Client.Patch(ctx, hub, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rotation":{"after":"2h"}}}`)))).To(Succeed())
		var spoke secretv1alpha1.Password
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(hub), &spoke)).To(Succeed())
		Expect(spoke.Spec).To(Equal(alpha("", 25, 4, 2).Spec))
		Expect(hub.Spec.Rotation.After).To(Equal("2h"))
		Expect(hub.Spec.SecretName).To(Equal("login"))
	}, SpecTimeout(waitTimeout))

	// Even an update that changes nothing makes the API server write an object, if the object is stored in a version other
	// than the storage version.
	It("lets an update that changes nothing move an object to the storage version", func(ctx SpecContext) {
		hub := password("migrated", secretName("login"), policy(24, 4, 2), rotation)
		hub.Namespace = byNone
		createAndForget(ctx, hub)
		wanted := hub.DeepCopy().Spec
		DeferCleanup(store, "v1")
		for _, version := range []string{"v1alpha1", "v1"} {
			store(ctx, version)
			Eventually(func() bool { return rewritten(ctx, hub) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).
				Should(BeTrue(), "the update should store the object as %s", version)
			Expect(rewritten(ctx, hub)).To(BeFalse(), "a second update should write nothing")
			Expect(hub.Spec).To(Equal(wanted))
			Expect(hub.Annotations).To(BeEmpty(), "this Password needs no annotation in v1, see ConvertTo and unpack in password_conversion.go")
		}
		var definition apiextensionsv1.CustomResourceDefinition
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(env.definition), &definition)).To(Succeed())
		Expect(definition.Status.StoredVersions).To(ConsistOf("v1", "v1alpha1"), "status.storedVersions should name both versions until someone removes one")
	}, SpecTimeout(2*waitTimeout))
})

func createAndForget(ctx SpecContext, object client.Object) {
	GinkgoHelper()
	Expect(env.Client.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(env.Client.Delete(ctx, object)).To(Succeed()) })
}

func patchAlpha(ctx SpecContext, object client.Object, patch string) {
	GinkgoHelper()
	spoke := &secretv1alpha1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	Expect(env.Client.Patch(ctx, spoke, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// store makes a version the storage version of Passwords.
func store(ctx SpecContext, version string) {
	GinkgoHelper()
	var definition apiextensionsv1.CustomResourceDefinition
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(env.definition), &definition)).To(Succeed())
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Storage = definition.Spec.Versions[i].Name == version
	}
	Expect(env.Client.Update(ctx, &definition)).To(Succeed())
}

// rewritten reads the object, updates it without changing anything, and reports whether the API server has written it.
func rewritten(ctx SpecContext, object *secretv1.Password) bool {
	GinkgoHelper()
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.ResourceVersion
	Expect(env.Client.Update(ctx, object)).To(Succeed())
	return object.ResourceVersion != before
}
