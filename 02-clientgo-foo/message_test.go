package main

//workshop:given 2.15a

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

var _ = Describe("the message", func() {
	It("has at most 256 characters", func(ctx SpecContext) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newFoo(cluster.Namespace(ctx), "talkative", "talkative"))
		Expect(err).NotTo(HaveOccurred())
		foo := &unstructured.Unstructured{Object: content}
		foo.SetGroupVersionKind(examplev1alpha1.SchemeGroupVersion.WithKind("Foo"))
		Expect(unstructured.SetNestedField(foo.Object, strings.Repeat("ö", 257), "spec", "message")).To(Succeed())
		Expect(cluster.Client.Create(ctx, foo)).To(MatchError(ContainSubstring("spec.message: Too long")), "see the markers in types.go")
		Expect(unstructured.SetNestedField(foo.Object, strings.Repeat("ö", 256), "spec", "message")).To(Succeed())
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed(), "the limit counts characters, not bytes")
	}, SpecTimeout(specTimeout))

	It("is optional", func(ctx SpecContext) {
		foo := newFoo(cluster.Namespace(ctx), "taciturn", "taciturn")
		Expect(cluster.Client.Create(ctx, foo)).To(Succeed(), "Foos that were created before the field existed must stay valid")
	}, SpecTimeout(specTimeout))
})
