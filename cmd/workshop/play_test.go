package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/kube/kubetest"
)

func TestMissingImagesAreNamed(t *testing.T) {
	g := NewWithT(t)
	pods := `{"items": []}`
	config := kubetest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(pods))
	}))
	path := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(path, kubetest.YAML(t, config), 0o600)).To(Succeed())
	used, found := kubeconfigOf([]string{"KUBECONFIG=/theirs", "A=b", "KUBECONFIG=" + path})
	g.Expect(found).To(BeTrue())
	g.Expect(missingImages(t.Context(), used)).To(BeEmpty())
	pods = `{"items": [{"metadata": {"namespace": "a", "name": "web"}, "spec": {"nodeName": "worker"}, "status": {"containerStatuses": [
		{"image": "nginx:1.29", "state": {"waiting": {"reason": "ErrImagePull"}}}]}}]}`
	g.Expect(missingImages(t.Context(), used)).To(Equal("node worker can't get the image nginx:1.29 of pod a/web (ErrImagePull)"))
	g.Expect(missingImages(t.Context(), "/nowhere")).To(BeEmpty(), "if the cluster doesn't answer, there must be nothing to add")
}
