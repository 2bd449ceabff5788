package config

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// newWriter returns a client that keeps objects in memory, and knows the scopes of two kinds.
func newWriter() client.Client {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	return fake.NewClientBuilder().WithRESTMapper(mapper).Build()
}

func TestPreparedObjectsNameTheTrialsNamespace(t *testing.T) {
	g := NewWithT(t)
	operator, _, err := load(t, least+`
prepare:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: zone, namespace: default}, data: {in: "{{.Namespace}}"}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: "reads-{{.Namespace}}"}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
  subjects: [{kind: ServiceAccount, name: default, namespace: "{{.Namespace}}"}]
`)
	g.Expect(err).NotTo(HaveOccurred())
	writer := newWriter()
	g.Expect(operator.Prepare(t.Context(), writer, "spec-abcde")).To(Succeed())
	g.Expect(operator.Prepare(t.Context(), writer, "spec-fghij")).To(Succeed(), "trials run in parallel")

	zone := &corev1.ConfigMap{}
	g.Expect(writer.Get(t.Context(), client.ObjectKey{Namespace: "spec-abcde", Name: "zone"}, zone)).To(Succeed())
	g.Expect(zone.Data).To(HaveKeyWithValue("in", "spec-abcde"))
	binding := &rbacv1.ClusterRoleBinding{}
	g.Expect(writer.Get(t.Context(), client.ObjectKey{Name: "reads-spec-fghij"}, binding)).To(Succeed())
	g.Expect(binding.Subjects).To(HaveExactElements(HaveField("Namespace", "spec-fghij")))
}

func TestAPreparedClusterScopedObjectMustNameTheTrialsNamespace(t *testing.T) {
	g := NewWithT(t)
	operator, _, err := load(t, least+"prepare: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads}}]\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(operator.Prepare(t.Context(), newWriter(), "spec-abcde")).To(MatchError(
		"ClusterRoleBinding reads is cluster-scoped, so its name must contain {{.Namespace}}: otherwise the trials, which run in parallel, would share it"))
}
