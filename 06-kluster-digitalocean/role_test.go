package main

import (
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/yaml"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

var _ = Describe("an operator with --namespace", func() {
	It("needs its role only in that namespace, as config/namespaced grants it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		manifest, err := os.ReadFile("config/rbac/role.yaml")
		Expect(err).NotTo(HaveOccurred())
		document, _, _ := strings.Cut(strings.TrimPrefix(string(manifest), "---\n"), "\n---\n")
		var role rbacv1.ClusterRole
		Expect(yaml.UnmarshalStrict([]byte(document), &role)).To(Succeed())
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "kluster-operator"}
		Expect(cluster.Client.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules})).To(Succeed())
		Expect(cluster.Client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
		})).To(Succeed())

		stop, ended := runWith(as(namespace), testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectGone(ctx, kluster)
		stop()
		Eventually(ended).WithContext(ctx).Should(Receive(BeNil()))
	}, SpecTimeout(specTimeout))
})

// as impersonates a user in the operator's requests.
func as(user string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			request = request.Clone(request.Context())
			request.Header.Set(transport.ImpersonateUserHeader, user)
			return next.RoundTrip(request)
		})
	}
}
