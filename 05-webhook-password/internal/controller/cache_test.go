package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestCacheByObject(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CacheByObject()).To(HaveLen(1))
	for object, settings := range CacheByObject() {
		g.Expect(object).To(BeAssignableToTypeOf(&corev1.Secret{}))
		g.Expect(settings.Label.String()).To(Equal("app.kubernetes.io/managed-by=password-operator"), "other people's Secrets must not enter this process")
	}
}
