package v1alpha1

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestSchemeKnowsTheKinds(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	for kind, object := range map[string]runtime.Object{"Kluster": &Kluster{}, "KlusterList": &KlusterList{}} {
		kinds, _, err := scheme.ObjectKinds(object)
		g.Expect(err).NotTo(HaveOccurred(), "see register.go")
		g.Expect(kinds).To(ConsistOf(SchemeGroupVersion.WithKind(kind)))
	}
	g.Expect(scheme.Recognizes(SchemeGroupVersion.WithKind("WatchEvent"))).To(BeTrue(), "a client must be able to decode a watch of Klusters")
	g.Expect(scheme.Recognizes(metav1.SchemeGroupVersion.WithKind("Kluster"))).To(BeFalse())
	g.Expect(Resource("klusters").String()).To(Equal("klusters.inspirit941.dev"))
}

// The API server refuses finalizers that are not qualified names. A UID has 36 characters.
func TestFinalizersAreQualifiedNames(t *testing.T) {
	for _, finalizer := range []string{Finalizer, TokenFinalizerPrefix + "0b5c0a52-0000-4000-8000-000000000001"} {
		NewWithT(t).Expect(validation.IsQualifiedName(finalizer)).To(BeEmpty(), finalizer)
	}
}
