package trial

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/operatortest"
)

func TestRefused(t *testing.T) {
	coded := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"invalid":                          {apierrors.NewInvalid(schema.GroupKind{Kind: "Foo"}, "a", nil), true},
		"forbidden":                        {apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, "a", nil), true},
		"denied by a webhook":              {coded(http.StatusForbidden, `admission webhook "foo.example.com" denied the request: too big`), true},
		"denied without a code":            {coded(http.StatusBadRequest, `admission webhook "foo.example.com" denied the request: too big`), true},
		"denied without a reason":          {coded(http.StatusNotAcceptable, `admission webhook "foo.example.com" denied the request without explanation`), true},
		"denied with an internal error":    {coded(http.StatusInternalServerError, `admission webhook "foo.example.com" denied the request: too big`), true},
		"a webhook that doesn't answer":    {apierrors.NewInternalError(errors.New(`failed calling webhook "foo.example.com": EOF`)), false},
		"a webhook that allows no dry run": {apierrors.NewBadRequest(`admission webhook "foo.example.com" does not support dry run`), false},
		"an unknown field":                 {apierrors.NewBadRequest(`strict decoding error: unknown field "spec.a"`), false},
		"a server that doesn't answer":     {errors.New("connection refused"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Refused(fmt.Errorf("try out a spec: %w", test.err))).To(Equal(test.want))
		})
	}
}

func TestNamespacedChildNames(t *testing.T) {
	g := NewWithT(t)
	settings, roles := corev1.SchemeGroupVersion.WithKind("ConfigMap"), rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	runner := &Runner{
		Operator:      operatortest.Operator{Children: []operatortest.Child{{Kind: settings}, {Kind: roles}}},
		Sample:        objectNamed("example.com/v1", "Depot", "depot"),
		clusterScoped: map[schema.GroupVersionKind]bool{roles: true},
	}
	g.Expect(runner.ChildNames(nil)).To(Equal([]string{"ConfigMap/depot", "ClusterRole/depot"}))
	g.Expect(runner.NamespacedChildNames(nil)).To(Equal([]string{"ConfigMap/depot"}))
}
