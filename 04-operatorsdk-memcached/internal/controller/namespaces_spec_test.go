package controller_test

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("a manager of some namespaces", func() {
	It("never asks for anything outside them, and needs no rights there", func(ctx SpecContext) {
		own, other := cluster.Namespace(ctx), cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(confinedTo(ctx, own)), testOptions(own))
		memcached, elsewhere := newMemcached(own, "own", 1), newMemcached(other, "elsewhere", 1)
		create(ctx, elsewhere, memcached)
		expectConditions(ctx, memcached, converged)
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		expectGone(ctx, memcached)
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopping", "Normal Stopped")

		for _, request := range tap.Requests() {
			inside := request.Resource == "" || request.Namespace == own // discovery requests name no resource
			Expect(inside).To(BeTrue(), "the manager of namespace %s must not ask for anything outside it, but sent %s: see cachedNamespaces in manager/manager.go", own, request)
			Expect(request.Status).NotTo(Equal(403), "a Role in its namespace must be enough for %s", request)
		}
		Expect(conditionsOf(ctx, Default, elsewhere)).To(Equal(conditions{}), "the manager must not touch a Memcached in another namespace")
		Expect(elsewhere.Finalizers).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("serves each of them", func(ctx SpecContext) {
		first, second := cluster.Namespace(ctx), cluster.Namespace(ctx)
		startManager(confinedTo(ctx, first, second), testOptions(first, second))
		for _, namespace := range []string{first, second} {
			memcached := newMemcached(namespace, "served", 1)
			create(ctx, memcached)
			expectConditions(ctx, memcached, converged)
			Expect(memcached.Status.Nodes).To(HaveLen(1), "the status must name the pods in the Memcached's own namespace, not those of its namesake")
		}
	}, SpecTimeout(specTimeout))
})

// confinedTo grants a user the permissions of config/rbac/role.yaml, but only in these namespaces. It returns the
// user's configuration.
func confinedTo(ctx context.Context, namespaces ...string) *rest.Config {
	GinkgoHelper()
	user := "manager-of-" + namespaces[0]
	for _, namespace := range namespaces {
		name := metav1.ObjectMeta{Namespace: namespace, Name: "manager"}
		create(ctx,
			&rbacv1.Role{ObjectMeta: name, Rules: rulesOf("../../config/rbac/role.yaml")},
			&rbacv1.RoleBinding{
				ObjectMeta: name,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			})
	}
	return asUser(user)
}

// asUser returns the configuration of a user who has only the permissions that roles grant.
func asUser(name string) *rest.Config {
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return config
}

func rulesOf(file string) []rbacv1.PolicyRule {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(content, role)).To(Succeed())
	Expect(role.Rules).NotTo(BeEmpty())
	return role.Rules
}
