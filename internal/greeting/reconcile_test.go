package greeting

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a Greeting", func() {
	var greeting *Greeting

	BeforeEach(func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startOperator(namespace)
		greeting = newGreeting(namespace)
	})

	Context("that is valid", func() {
		BeforeEach(func(ctx SpecContext) {
			Expect(cluster.Client.Create(ctx, greeting)).To(Succeed())
			expectReason(ctx, greeting, ReasonGreeted)
		})

		It("has a ConfigMap with the text", func(ctx SpecContext) {
			Expect(textOf(ctx, greeting)).To(Equal("Hallo, Ada!"))
		}, SpecTimeout(specTimeout))

		It("has a new text when its language changes", func(ctx SpecContext) {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"language":"fr"}}`))
			Expect(cluster.Client.Patch(ctx, greeting, patch)).To(Succeed())
			Eventually(textOf).WithContext(ctx).WithArguments(greeting).WithTimeout(convergeTimeout).WithPolling(pollInterval).
				Should(Equal("Bonjour, Ada!"))
		}, SpecTimeout(specTimeout))

		It("leaves no ConfigMap behind when it is deleted", Label("slow"), func(ctx SpecContext) {
			Expect(cluster.Client.Delete(ctx, greeting)).To(Succeed())
			Eventually(gone(cluster.Client, newConfigMap(greeting))).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).
				Should(BeTrue(), "the garbage collector must delete what a Greeting owned")
		}, SpecTimeout(specTimeout))
	})

	Context("whose ConfigMap belongs to someone else", func() {
		var theirs *corev1.ConfigMap

		BeforeEach(func(ctx SpecContext) {
			theirs = newConfigMap(greeting)
			theirs.Data = map[string]string{textKey: "not yours"}
			Expect(cluster.Client.Create(ctx, theirs)).To(Succeed())
			Expect(cluster.Client.Create(ctx, greeting)).To(Succeed())
			expectReason(ctx, greeting, ReasonNameTaken)
		})

		It("leaves the ConfigMap alone", func(ctx SpecContext) {
			Consistently(textOf).WithContext(ctx).WithArguments(greeting).WithTimeout(quietTime).WithPolling(pollInterval).
				Should(Equal("not yours"))
		}, SpecTimeout(specTimeout))

		It("gets its own once the name is free", func(ctx SpecContext) {
			Expect(cluster.Client.Delete(ctx, theirs)).To(Succeed())
			expectReason(ctx, greeting, ReasonGreeted)
		}, SpecTimeout(specTimeout))
	})
})

// textOf reads the text from the Greeting's ConfigMap.
func textOf(ctx context.Context, greeting *Greeting) (string, error) {
	configMap := newConfigMap(greeting)
	err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(configMap), configMap)
	return configMap.Data[textKey], err
}

// expectReason waits until the condition Ready has the reason, for the Greeting's current generation.
func expectReason(ctx context.Context, greeting *Greeting, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(greeting), greeting)).To(Succeed())
		ready := meta.FindStatusCondition(greeting.Status.Conditions, ConditionReady)
		g.Expect(ready).NotTo(BeNil(), "the Greeting has no condition Ready yet, see updateStatus in reconciler.go")
		g.Expect(ready.Reason).To(Equal(reason), "Ready is %s: %s", ready.Status, ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(greeting.Generation))
	}).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}
