// Package kubetest starts fake API servers for tests that use package kube.
package kubetest

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// Serve starts a server that requires a client certificate, and stops it when the test ends. It returns a kubeconfig
// for the server. Tests may change the kubeconfig.
func Serve(t *testing.T, handler http.Handler) map[string]any {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("admin", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: server.Certificate().Raw})
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "preferences": map[string]any{}, "current-context": "test",
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "admin"}}},
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "admin", "user": map[string]any{"client-certificate-data": certificate, "client-key-data": key}}},
	}
}

// YAML encodes a kubeconfig.
func YAML(t *testing.T, kubeconfig map[string]any) []byte {
	t.Helper()
	content, err := yaml.Marshal(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
