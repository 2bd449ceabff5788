//workshop:given 3.3a

package controller_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/manager"
	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("the metrics", func() {
	It("are served only to clients with permission to get them", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		grant(ctx, "../../config/rbac/metrics_auth_role.yaml", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "manager-" + namespace})
		address := serveMetrics(asUser("manager-"+namespace), manager.Default())
		stranger, reader := newAccount(ctx, namespace, "stranger"), newAccount(ctx, namespace, "reader")
		grant(ctx, "../../config/rbac/metrics_reader_role.yaml", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"})
		waitForRight(ctx, "system:serviceaccount:"+namespace+":reader")

		status, _ := get(ctx, "https://"+address+"/metrics", "")
		Expect(status).To(Equal(http.StatusUnauthorized), "a client without a token must be refused")
		status, _ = get(ctx, "https://"+address+"/metrics", "no.valid.token")
		Expect(status).To(BeElementOf(http.StatusUnauthorized, http.StatusInternalServerError), "a token that the API server has not issued must be refused; controller-runtime v0.25.2 responds with 500")
		status, _ = get(ctx, "https://"+address+"/metrics", stranger)
		Expect(status).To(Equal(http.StatusForbidden), "the token of an account without the permission must be refused")
		status, body := get(ctx, "https://"+address+"/metrics", reader)
		Expect(status).To(Equal(http.StatusOK), "the token of an account with the role metrics-reader must be accepted: %s", body)
		Expect(body).To(ContainSubstring("\ncontroller_runtime_"))
		status, _, err := request(ctx, "http://"+address+"/metrics", reader)
		Expect(status).To(BeElementOf(0, http.StatusBadRequest), "the server must not accept a token without TLS (error: %v)", err)
	}, SpecTimeout(specTimeout))

	DescribeTable("are served", func(ctx SpecContext, http2 bool, protocol string) {
		options := manager.Default()
		options.EnableHTTP2 = http2
		address := serveMetrics(cluster.Config, options)
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}} // the certificate is self-signed
		connection, err := dialer.DialContext(ctx, "tcp", address)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(connection.Close)
		Expect(connection.(*tls.Conn).ConnectionState().NegotiatedProtocol).To(Equal(protocol), "see forServer in manager/manager.go")
	},
		Entry("over HTTP/1.1 only, by default", false, "http/1.1", SpecTimeout(specTimeout)),
		Entry("over HTTP/2, if it is enabled", true, "h2", SpecTimeout(specTimeout)),
	)

	It("are served to all clients, without TLS, if Secure is false", func(ctx SpecContext) {
		options := manager.Default()
		options.Metrics.Secure = false
		status, body := get(ctx, "http://"+serveMetrics(cluster.Config, options)+"/metrics", "")
		Expect(status).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring("\ncontroller_runtime_"))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the probes", func() {
	It("report ready only when the caches are filled", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap, listing, proceed := holdLists("services")
		options := testOptions(namespace)
		options.HealthProbeBindAddress = freeAddress()
		startManager(tap.Config(cluster.Config), options)
		Eventually(listing).WithContext(ctx).WithTimeout(convergeTimeout).Should(BeClosed())
		probe := func(path string) func() (int, error) {
			return func() (int, error) {
				status, _, err := request(ctx, "http://"+options.HealthProbeBindAddress+path, "")
				return status, err
			}
		}
		Eventually(probe("/healthz")).WithContext(ctx).WithTimeout(convergeTimeout).Should(Equal(http.StatusOK), "a manager that is still filling its caches must not be restarted")
		Expect(probe("/readyz")()).To(Equal(http.StatusInternalServerError), "see cachesFilled in manager/manager.go")

		close(proceed)
		Eventually(probe("/readyz")).WithContext(ctx).WithTimeout(convergeTimeout).Should(Equal(http.StatusOK))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the manager", func() {
	It("stops while its caches are being filled, even if the API server does not answer", func(ctx SpecContext) {
		tap, listing, proceed := holdLists("guestbooks") // the first cache that a manager fills
		DeferCleanup(func() { close(proceed) })
		stop := startManager(tap.Config(cluster.Config), testOptions(cluster.Namespace(ctx)))
		Eventually(listing).WithContext(ctx).WithTimeout(convergeTimeout).Should(BeClosed())
		stop() // see WaitForCacheSync in manager/cache.go
	}, SpecTimeout(specTimeout))
})

// serveMetrics serves the metrics as a manager with these options would, until the spec ends, and returns the address.
func serveMetrics(config *rest.Config, options manager.Options) string {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	options.Metrics.BindAddress = "127.0.0.1:0"
	httpClient, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	server, err := metricsserver.NewServer(managerOptions(ctx, options).Metrics, config, httpClient)
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).WithTimeout(convergeTimeout).Should(Receive(BeNil()))
	})
	listening, hasAddress := server.(interface{ GetBindAddr() string })
	Expect(hasAddress).To(BeTrue())
	Eventually(listening.GetBindAddr).WithTimeout(convergeTimeout).WithPolling(pollInterval).ShouldNot(BeEmpty())
	return listening.GetBindAddr()
}

// grant gives the subject the permissions of the role in a file, in all namespaces, until the spec ends.
func grant(ctx context.Context, file string, subject rbacv1.Subject) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "guestbook-spec-"}, Rules: rulesOf(file)}
	create(ctx, role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	create(ctx, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(cluster.Client.Delete(ctx, binding)).To(Succeed())
		Expect(cluster.Client.Delete(ctx, role)).To(Succeed())
	}, NodeTimeout(specTimeout))
}

// newAccount creates a service account, and returns a token for it.
func newAccount(ctx context.Context, namespace, name string) (token string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	create(ctx, account)
	request := &authenticationv1.TokenRequest{}
	Expect(cluster.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// waitForRight waits until the API server allows a user to get the metrics. A request to the
// metrics server must not come earlier: that server caches a refusal for half a minute.
func waitForRight(ctx context.Context, user string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  user,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		g.Expect(cluster.Client.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(BeTrue(), "see config/rbac/metrics_reader_role.yaml")
	})
}

func get(ctx context.Context, url, token string) (status int, body string) {
	GinkgoHelper()
	status, body, err := request(ctx, url, token)
	Expect(err).NotTo(HaveOccurred())
	return status, body
}

func request(ctx context.Context, url, token string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("make a request: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // the certificate is self-signed
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("get %s: %w", url, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// freeAddress returns an address that was free a moment ago.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// holdLists returns a Tap that holds back list and watch requests for a resource until proceed is closed. The first of
// these requests closes listing.
func holdLists(resource string) (tap *traffic.Tap, listing, proceed chan struct{}) {
	tap, listing, proceed = traffic.New(), make(chan struct{}), make(chan struct{})
	var once sync.Once
	tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.Resource != resource || request.Verb != "list" && request.Verb != "watch" {
			return traffic.Action{}
		}
		once.Do(func() { close(listing) })
		return traffic.Action{Hold: proceed}
	})
	return tap, listing, proceed
}
