package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// patience bounds each wait for a server or a process on this machine.
const patience = 20 * time.Second

// isolate hides the cluster of the pod, the operator's variables and the home directory that the tests may run in. In its
// stead is a home whose kubeconfig names a cluster, which must never be asked.
func isolate(t *testing.T) {
	for _, variable := range []string{"KUBERNETES_SERVICE_HOST", "ENABLE_WEBHOOKS", "POD_NAMESPACE"} {
		t.Setenv(variable, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	g := NewWithT(t)
	g.Expect(os.Mkdir(filepath.Join(home, ".kube"), 0o700)).To(Succeed())
	content, err := os.ReadFile(kubeconfigFor(t, freeAddress(t)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(home, ".kube", "config"), content, 0o600)).To(Succeed())
}

func nonsense(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "nonsense")
	NewWithT(t).Expect(os.WriteFile(file, []byte("not: [a kubeconfig"), 0o600)).To(Succeed())
	return file
}

func kubeconfigFor(t *testing.T, address string) string {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: 'http://" + address + "'}}]\n"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	return file
}

// certificates is a folder with a certificate for this machine, and its key.
func certificates(t *testing.T) string {
	g := NewWithT(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
	return folder
}

// listen occupies an address until the test ends.
func listen(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// freeAddress is one that nothing listened on a moment ago.
func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// kinds are those that the manager asks for, by their resource.
var kinds = map[schema.GroupVersion]map[string]string{
	corev1.SchemeGroupVersion:   {"secrets": "Secret"},
	secretv1.SchemeGroupVersion: {"passwords": "Password"},
}

// apiServer answers like one in whose cluster there is nothing.
type apiServer struct {
	// unknown is a group whose kinds it does not know.
	unknown string
	// silent makes it tell its kinds only, and never answer anything else.
	silent bool
}

func (s apiServer) start(t *testing.T) (address string) {
	answers := s.answers()
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		isWatch := request.URL.Query().Get("watch") != ""
		listsByWatch := request.URL.Query().Get("sendInitialEvents") != ""
		answer, found := answers[request.URL.Path]
		_, isList := answer.(metav1.List)
		switch {
		case isList && s.silent, isWatch && !listsByWatch:
			<-request.Context().Done()
		case isWatch:
			http.Error(reply, "list it", http.StatusBadRequest)
		case !found:
			http.NotFound(reply, request)
		default:
			reply.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(reply).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// answers are the kinds, and empty lists of their objects, by the path of the request.
func (s apiServer) answers() map[string]any {
	groups := metav1.APIGroupList{}
	answers := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}, "/apis": &groups}
	for version, resources := range kinds {
		path := "/apis/" + version.String()
		switch {
		case version == corev1.SchemeGroupVersion:
			path = "/api/v1"
		case version.Group == s.unknown:
			continue
		default:
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{
				{GroupVersion: version.String(), Version: version.Version},
			}})
		}
		list := metav1.APIResourceList{GroupVersion: version.String()}
		for resource, kind := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}})
			answers[path+"/"+resource] = metav1.List{
				TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: kind + "List"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			}
		}
		answers[path] = list
	}
	return answers
}
