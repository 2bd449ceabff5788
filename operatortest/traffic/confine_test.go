package traffic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestConfine(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	tap.Confine(func(request Request) bool { return request.Resource != "nodes" }, "here")
	clients := newClient(g, tap, server.config)
	all, some := metav1.ListOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=settings"}
	_, _ = clients.CoreV1().ConfigMaps("").List(t.Context(), some)
	_, _ = clients.AppsV1().Deployments("").Watch(t.Context(), all)
	_, _ = clients.CoreV1().ConfigMaps("there").List(t.Context(), all)
	_, _ = clients.CoreV1().Nodes().List(t.Context(), all)
	_ = create(t.Context(), clients)
	var paths []string
	var confined []bool
	for _, request := range tap.Requests() {
		paths, confined = append(paths, request.Path), append(confined, request.Confined)
	}
	g.Expect(paths).To(Equal([]string{
		"/api/v1/namespaces/here/configmaps", "/apis/apps/v1/namespaces/here/deployments", "/api/v1/namespaces/there/configmaps", "/api/v1/nodes",
		"/api/v1/namespaces/here/configmaps",
	}))
	g.Expect(confined).To(Equal([]bool{true, true, false, false, false}))
	g.Expect(server.received.Load()).To(Equal(int64(5)))
}

func TestConfineToSeveralNamespaces(t *testing.T) {
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"settings"}}`
	in := func(format string) string {
		var objects []string
		for _, namespace := range []string{"here", "elsewhere", "there"} {
			objects = append(objects, fmt.Sprintf(format, fmt.Sprintf(configMap, namespace)))
		}
		return strings.Join(objects, ",")
	}
	tests := map[string]struct {
		query, reply string
		seen         int
	}{
		"a list":        {reply: `{"kind":"ConfigMapList","apiVersion":"v1","items":[` + in("%s") + `]}`, seen: 2},
		"an empty list": {reply: `{"kind":"ConfigMapList","apiVersion":"v1","items":null}`},
		"a table":       {reply: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[` + in(`{"cells":[],"object":%s}`) + `]}`, seen: 2},
		"a watch": {
			query: "?watch=true", seen: 2,
			reply: strings.ReplaceAll(in(`{"type":"ADDED","object":%s}`), `},{"type"`, "}\n{\"type\"") + "\n" + string(initialEnd) + "\n",
		},
		"a watch of tables": {
			query: "?watch=true", seen: 2,
			reply: strings.ReplaceAll(in(`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[{"cells":[],"object":%s}]}}`),
				`},{"type"`, "}\n{\"type\"") + "\n" + string(initialEnd) + "\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, tap := NewWithT(t), New()
			server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
				reply.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(reply, test.reply)
			}))
			t.Cleanup(server.Close)
			tap.Confine(func(Request) bool { return true }, "here", "there")
			transport, err := rest.TransportFor(tap.Config(&rest.Config{Host: server.URL}))
			g.Expect(err).NotTo(HaveOccurred())
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/configmaps"+test.query, nil)
			g.Expect(err).NotTo(HaveOccurred())

			response, err := transport.RoundTrip(request)

			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			content, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Count(string(content), `"name":"settings"`)).To(Equal(test.seen), "%s", content)
			g.Expect(string(content)).NotTo(ContainSubstring("elsewhere"))
			g.Expect(strings.Contains(string(content), "initial-events-end")).To(Equal(test.query != ""), "a bookmark belongs to no namespace, so it must pass")
			g.Expect(tap.Requests()).To(HaveExactElements(And(HaveField("Confined", true), HaveField("Path", "/api/v1/configmaps"))))
		})
	}
}
