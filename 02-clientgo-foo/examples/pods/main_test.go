package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example/exampletest"
)

func TestListPods(t *testing.T) {
	g := NewWithT(t)
	cluster := exampletest.Serve(t, "/api/v1/namespaces/shop/pods", exampletest.JSON(corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Items: []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
			{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
		},
	}))
	printed, err := exampletest.Output(t, func() error { return listPods(t.Context(), cluster, nil) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(printed).To(Equal("web Running\ndb Pending\n"), "listPods must print a line for each pod of the namespace, with its name and its phase")

	cluster.Namespace = "elsewhere"
	_, err = exampletest.Output(t, func() error { return listPods(t.Context(), cluster, nil) })
	g.Expect(err).To(MatchError(ContainSubstring("list pods")), "an error must say what was tried")
}
