package controller_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("a manager", func() {
	It("of one namespace never reads anything outside it, and needs no permissions there", func(ctx SpecContext) {
		own, other := cluster.Namespace(ctx), cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(confinedTo(ctx, own)), testOptions(own))
		password, outside := newPassword(own, "own"), newPassword(other, "outside")
		create(ctx, outside, password)
		secret := expectReady(ctx, password)
		expectEvents(ctx, password, "Normal Generated")
		Expect(cluster.Client.Delete(ctx, password)).To(Succeed())
		expectGone(ctx, secret)

		for _, request := range tap.Requests() {
			inside := request.Resource == "" || request.Namespace == own // discovery requests name no resource
			Expect(inside).To(BeTrue(), "the manager of namespace %s sent the request %s: see cachedNamespaces in manager/manager.go", own, request)
			Expect(request.Status).NotTo(Equal(403), "a Role in its namespace must be enough for %s", request)
		}
		Expect(exists(ctx, Default, outside)).To(BeTrue())
		Expect(stateOf(outside)).To(BeEmpty(), "the manager must ignore Passwords in other namespaces")
	}, SpecTimeout(specTimeout))

	It("of several namespaces reconciles in each of them", func(ctx SpecContext) {
		first, second := cluster.Namespace(ctx), cluster.Namespace(ctx)
		startManager(confinedTo(ctx, first, second), testOptions(first, second))
		for _, namespace := range []string{first, second} {
			password := newPassword(namespace, "served")
			create(ctx, password)
			expectReady(ctx, password)
		}
	}, SpecTimeout(specTimeout))

	It("reads only the operator's own Secrets and those that a Password names", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}}
		password, taken := newPassword(namespace, "mine"), newPassword(namespace, "taken")
		taken.Spec.SecretName = "theirs"
		create(ctx, theirs, password, taken)
		requests := &secretRequests{}
		options := testOptions(namespace)
		setup := managerOptions(ctx, options)
		var held cache.Cache
		setup.NewCache = func(config *rest.Config, options cache.Options) (made cache.Cache, err error) {
			held, err = cache.New(config, options)
			return held, err
		}
		stop := start(clock.RealClock{}, requests.config(cluster.Config), setup, options)
		expectReady(ctx, password)
		expectState(ctx, taken, "Failed NameTaken")

		secrets := &corev1.SecretList{}
		Expect(held.List(ctx, secrets)).To(Succeed())
		Expect(secrets.Items).To(ContainElement(HaveField("Name", "mine")))
		Expect(secrets.Items).To(HaveEach(HaveField("Labels", HaveKeyWithValue("app.kubernetes.io/managed-by", "password-operator"))))
		stop()
		lists, names, whole := requests.seen()
		Expect(lists).NotTo(BeEmpty())
		Expect(lists).To(HaveEach("app.kubernetes.io/managed-by=password-operator"), "the API server sends every Secret that the selector matches, see CacheByObject in password_controller.go")
		Expect(names).To(And(HaveEach(BeElementOf("mine", "theirs")), ContainElement("theirs")), "see findSecret in secret.go")
		Expect(whole).NotTo(ContainElement("theirs"), "the metadata is enough to find the owner: see lookUp in secret.go")
	}, SpecTimeout(specTimeout))
})

// secretRequests records an operator's reads of Secrets. A Tap would not record the selectors.
type secretRequests struct {
	mu sync.Mutex
	// selectors are the label selectors of lists and watches. names are the names of the Secrets that were read one by
	// one, and whole are the names of those that were read with their data.
	selectors, names, whole []string
}

func (r *secretRequests) config(config *rest.Config) *rest.Config {
	watched := rest.CopyConfig(config)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet {
				r.note(request.URL, strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata"))
			}
			return next.RoundTrip(request)
		})
	})
	return watched
}

func (r *secretRequests) note(address *url.URL, metadataOnly bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, name, isSecret := strings.Cut(address.Path, "/secrets")
	switch {
	case !isSecret:
	case name == "":
		r.selectors = append(r.selectors, address.Query().Get("labelSelector"))
	default:
		r.names = append(r.names, strings.TrimPrefix(name, "/"))
		if !metadataOnly {
			r.whole = append(r.whole, strings.TrimPrefix(name, "/"))
		}
	}
}

func (r *secretRequests) seen() (selectors, names, whole []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.selectors, r.names, r.whole
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// confinedTo returns a config for a user who has the permissions of config/rbac/role.yaml only in these namespaces.
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
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// rulesOf returns the rules of the role in a file.
func rulesOf(file string) []rbacv1.PolicyRule {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(content, role)).To(Succeed())
	Expect(role.Rules).NotTo(BeEmpty())
	return role.Rules
}
