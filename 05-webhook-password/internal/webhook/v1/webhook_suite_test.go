package v1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var env = newEnvironment()

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Admission")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(env.stop)
	Expect(env.start(ctx)).To(Succeed())
	// Create the cases' old objects before any admission applies, because some of them would be refused.
	for _, namespace := range []string{byWebhooks, byPolicies} {
		for _, c := range cases() {
			storeOld(ctx, namespace, c)
		}
	}
	Expect(env.askWebhooksAndPolicies(ctx)).To(Succeed())
	awaitAdmission(ctx)
}, NodeTimeout(2*waitTimeout))

func storeOld(ctx SpecContext, namespace string, c admissionCase) {
	GinkgoHelper()
	if c.old == nil {
		return
	}
	object := c.old.DeepCopyObject().(client.Object)
	object.SetNamespace(namespace)
	Expect(env.Client.Create(ctx, object)).To(Succeed(), "the existing object of a case can't be stored; if its name is taken, two cases use the same name")
}

// awaitAdmission waits until a few cases show that the webhooks and the policies are in effect. The API
// server takes up to a second to notice a new one.
func awaitAdmission(ctx SpecContext) {
	GinkgoHelper()
	all := cases()
	for _, namespace := range []string{byWebhooks, byPolicies} {
		for _, name := range []string{
			"the defaults", "11 digits once", "8 letters", "a protected one",
			"another name", //workshop:step 5.13b
		} {
			Eventually(func(g Gomega) {
				c := all[name]
				found, err := env.try(ctx, namespace, c)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(c.differs(found)).To(BeEmpty(), "the case %q, by %s; a policy must be among the resources of config/policies/kustomization.yaml", name, namespace)
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed(), "the rules should take effect within seconds")
		}
	}
}
