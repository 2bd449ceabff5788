//workshop:given 3.3a

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

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("a manager of some namespaces", func() {
	It("sends no requests for other namespaces, and needs no permissions there", func(ctx SpecContext) {
		own, other := cluster.Namespace(ctx), cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(confinedTo(ctx, own)), testOptions(own))
		guestbook, elsewhere := newGuestbook(own, "own", 1), newGuestbook(other, "elsewhere", 1)
		create(ctx, newSettings(own, "page-settings", "Welcome"), newSettings(other, "page-settings", "Welcome"), elsewhere, guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Normal Available")

		for _, request := range tap.Requests() {
			inside := request.Resource == "" || request.Namespace == own // discovery requests have no resource
			Expect(inside).To(BeTrue(), "the manager of namespace %s must send no requests for anything outside it, but sent %s: see cachedNamespaces in manager/manager.go", own, request)
			Expect(request.Status).NotTo(Equal(403), "a Role in its namespace must be enough: %s", request)
		}
		Expect(readyCondition(ctx, Default, elsewhere)).To(BeNil(), "the manager must not touch a Guestbook in another namespace")
	}, SpecTimeout(specTimeout))

	It("reconciles the Guestbooks in each of them, with settings from the same namespace", func(ctx SpecContext) {
		first, second := cluster.Namespace(ctx), cluster.Namespace(ctx)
		startManager(confinedTo(ctx, first, second), testOptions(first, second))
		settings := newSettings(first, "page-settings", "Welcome")
		guestbook, waiting := newGuestbook(first, "served", 1), newGuestbook(second, "waiting", 1)
		create(ctx, settings, guestbook, waiting)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectReason(ctx, waiting, webappv1.ReasonConfigMapNotFound)

		create(ctx, newSettings(second, "page-settings", "Welcome"))
		expectReason(ctx, waiting, webappv1.ReasonAvailable)
		before, revision := waiting.ResourceVersion, revisionOf(ctx, Default, guestbook)
		changePage(ctx, settings, "Hello")
		eventually(ctx, func(g Gomega) { g.Expect(revisionOf(ctx, g, guestbook)).NotTo(Equal(revision)) })
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		readyCondition(ctx, Default, waiting)
		Expect(waiting.ResourceVersion).To(Equal(before), "a change to settings in another namespace must not cause a write, see guestbooksWith in watches.go")
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
