package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/kube"
	"example.com/operator-workshop/internal/kube/kubetest"
)

func write(t *testing.T, kubeconfig map[string]any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(path, kubetest.YAML(t, kubeconfig), 0o600)).To(Succeed())
	return path
}

func TestGet(t *testing.T) {
	ended := make(chan struct{})
	routes := http.NewServeMux()
	routes.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"gitVersion": "v1.2.3"}`) })
	routes.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not yet", http.StatusInternalServerError) })
	routes.HandleFunc("/secret", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "message": "secrets is forbidden"}`)
	})
	routes.HandleFunc("/hung", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(ended) })
	kubeconfig := kubetest.Serve(t, routes)
	g := NewWithT(t)
	client, err := kube.Open(write(t, kubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.Server).To(HavePrefix("https://127.0.0.1:"))

	var version struct{ GitVersion string }
	get := kube.Get(client.Get)
	g.Expect(get.JSON(t.Context(), "/version", &version)).To(Succeed())
	g.Expect(version.GitVersion).To(Equal("v1.2.3"))
	g.Expect(get.JSON(t.Context(), "/version", new(int))).To(MatchError(HavePrefix("read the API server's answer to /version: ")))
	g.Expect(get.JSON(t.Context(), "/readyz", nil)).To(MatchError("the API server answers /readyz with 500 Internal Server Error"))
	g.Expect(get.JSON(t.Context(), "/secret", nil)).To(MatchError("secrets is forbidden"))

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	g.Expect(get.JSON(short, "/hung", nil)).To(MatchError(context.DeadlineExceeded))
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeClosed())
}

func TestOpenLeavesOtherKubeconfigsToKubectl(t *testing.T) {
	user := func(kubeconfig map[string]any) map[string]any {
		return kubeconfig["users"].([]any)[0].(map[string]any)["user"].(map[string]any)
	}
	cluster := func(kubeconfig map[string]any) map[string]any {
		return kubeconfig["clusters"].([]any)[0].(map[string]any)["cluster"].(map[string]any)
	}
	cases := map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"an exec plugin":                       {func(k map[string]any) { user(k)["exec"] = map[string]any{"command": "login"} }, "not like a kubeconfig that the workshop writes"},
		"a token":                              {func(k map[string]any) { user(k)["token"] = "secret" }, "not like a kubeconfig that the workshop writes"},
		"a proxy":                              {func(k map[string]any) { cluster(k)["proxy-url"] = "http://127.0.0.1:1" }, "not like a kubeconfig that the workshop writes"},
		"several clusters":                     {func(k map[string]any) { k["clusters"] = append(k["clusters"].([]any), map[string]any{"name": "two"}) }, "not like a kubeconfig that the workshop writes: it must have one cluster and one user, but has 2 and 1"},
		"no certificate":                       {func(k map[string]any) { delete(user(k), "client-certificate-data") }, "read the client certificate"},
		"no authority":                         {func(k map[string]any) { delete(cluster(k), "certificate-authority-data") }, "no certificate authority"},
		"the certificate of another authority": {func(k map[string]any) { cluster(k)["certificate-authority-data"] = user(k)["client-certificate-data"] }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kubeconfig := kubetest.Serve(t, http.NotFoundHandler())
			c.change(kubeconfig)
			client, err := kube.Open(write(t, kubeconfig))
			if c.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			_, err = client.Get(t.Context(), "/version")
			g.Expect(err).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
		})
	}
	_, err := kube.Open(filepath.Join(t.TempDir(), "absent"))
	NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
}
