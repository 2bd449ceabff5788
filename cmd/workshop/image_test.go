package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/kube/kubetest"
	"example.com/operator-workshop/internal/repo"
)

func TestGetUsesKubectlOnlyForKubeconfigsItCannotRead(t *testing.T) {
	g := NewWithT(t)
	a := &app{repo: repo.Repo{Root: t.TempDir()}}
	g.Expect(os.Mkdir(a.repo.Bin(), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(a.repo.Bin(), "kubectl"), []byte("#!/bin/sh\necho kubectl \"$@\"\n"), 0o755)).To(Succeed())
	kubeconfig := kubetest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.URL) }))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", path)

	g.Expect(os.WriteFile(path, kubetest.YAML(t, kubeconfig), 0o600)).To(Succeed())
	g.Expect(a.get()(t.Context(), "/version?verbose")).To(BeEquivalentTo("served /version?verbose"))

	kubeconfig["users"] = []any{map[string]any{"name": "admin", "user": map[string]any{"exec": map[string]any{"command": "login"}}}}
	g.Expect(os.WriteFile(path, kubetest.YAML(t, kubeconfig), 0o600)).To(Succeed())
	g.Expect(a.get()(t.Context(), "/version")).To(BeEquivalentTo("kubectl get --raw /version\n"))
}
