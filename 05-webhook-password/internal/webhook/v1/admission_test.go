package v1_test

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const writtenByHand = `
apiVersion: secret.example.com/v1
kind: Password
metadata:
  name: by-hand
spec:
  policy:
    length: 30
    require: []
    case: Mixed
    repeat: Allowed
  rotation:
    after: 720h
`

var _ = Describe("the admission of a Password", func() {
	for _, namespace := range []string{byWebhooks, byPolicies} {
		Context("by "+namespace, func() {
			for _, name := range slices.Sorted(maps.Keys(cases())) {
				It("decides about "+name, func(ctx SpecContext) {
					c := cases()[name]
					found, err := env.try(ctx, namespace, c)
					Expect(err).NotTo(HaveOccurred())
					Expect(c.differs(found)).To(BeEmpty(), "cases_test.go has the expected result: look into internal/webhook/v1 or config/policies")
				}, SpecTimeout(waitTimeout))
			}

			It("changes spec.secretName only, and does not rewrite a duration", func(ctx SpecContext) {
				object := &unstructured.Unstructured{}
				content, err := utilyaml.ToJSON([]byte(writtenByHand))
				Expect(err).NotTo(HaveOccurred())
				Expect(object.UnmarshalJSON(content)).To(Succeed())
				wanted := object.DeepCopy().Object["spec"].(map[string]any)
				wanted["secretName"] = "by-hand"
				object.SetNamespace(namespace)
				Expect(env.Client.Create(ctx, object, client.DryRunAll)).To(Succeed())
				Expect(object.Object["spec"]).To(Equal(wanted))
			}, SpecTimeout(waitTimeout))

			It("keeps a refused request out of the cluster, and lets an accepted one in", func(ctx SpecContext) {
				refused := password("really", policy(30, 11, 0), once)
				refused.Namespace = namespace
				Expect(env.Client.Create(ctx, refused)).To(MatchError(ContainSubstring(tooManyDigits)))
				accepted := password("really", annotation("enabled"))
				accepted.Namespace = namespace
				Expect(env.Client.Create(ctx, accepted)).To(Succeed(), "no Password with this name should exist")
				Expect(env.Client.Delete(ctx, accepted)).To(MatchError(ContainSubstring(protected)))
				Expect(env.Client.DeleteAllOf(ctx, accepted, client.InNamespace(namespace), client.MatchingFields{"metadata.name": "really"})).
					To(MatchError(ContainSubstring(protected)), "the API server should ask about each object that it deletes")
				accepted.Annotations = nil
				Expect(env.Client.Update(ctx, accepted)).To(Succeed())
				Expect(env.Client.Delete(ctx, accepted)).To(Succeed())
			}, SpecTimeout(waitTimeout))
		})
	}

	It("uses policies in which the API server finds no mistake", func(ctx SpecContext) {
		var policies admissionregistrationv1.ValidatingAdmissionPolicyList
		Eventually(func(g Gomega) {
			g.Expect(env.Client.List(ctx, &policies, client.MatchingLabels{"app.kubernetes.io/name": "password-operator"})).To(Succeed())
			g.Expect(policies.Items).To(HaveLen(5))
			for _, policy := range policies.Items {
				g.Expect(policy.Status.TypeChecking).NotTo(BeNil(), "a controller of Kubernetes checks the expressions against the schema of the CRD")
				g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty(), "%s", policy.Name)
			}
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
	}, SpecTimeout(waitTimeout))
})
