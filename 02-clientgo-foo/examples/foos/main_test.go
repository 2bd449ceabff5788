package main

//workshop:given 2.6

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example/exampletest"
	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

func TestListFoos(t *testing.T) {
	g := NewWithT(t)
	cluster := exampletest.Serve(t, "/apis/example.com/v1alpha1/namespaces/shop/foos", exampletest.JSON(examplev1alpha1.FooList{
		TypeMeta: metav1.TypeMeta{APIVersion: examplev1alpha1.SchemeGroupVersion.String(), Kind: "FooList"},
		Items: []examplev1alpha1.Foo{
			{ObjectMeta: metav1.ObjectMeta{Name: "front"}, Spec: examplev1alpha1.FooSpec{DeploymentName: "web", Replicas: 3}},
			{ObjectMeta: metav1.ObjectMeta{Name: "back"}, Spec: examplev1alpha1.FooSpec{DeploymentName: "db", Replicas: 1}},
		},
	}))
	printed, err := exampletest.Output(t, func() error { return listFoos(t.Context(), cluster, nil) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(printed).To(Equal("front wants 3 replicas in Deployment web\nback wants 1 replicas in Deployment db\n"))

	cluster.Namespace = "elsewhere"
	_, err = exampletest.Output(t, func() error { return listFoos(t.Context(), cluster, nil) })
	g.Expect(err).To(MatchError(ContainSubstring("list Foos")), "an error must say what was tried")
}
