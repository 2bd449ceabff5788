package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
)

func TestListPods(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet || request.URL.Path != "/api/v1/namespaces/shop/pods" {
			http.NotFound(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(response).Encode(corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			Items: []corev1.Pod{
				{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
				{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
			},
		})
	}))
	t.Cleanup(server.Close)
	printed, err := output(t, func() error {
		return listPods(t.Context(), example.Cluster{Config: &rest.Config{Host: server.URL}, Namespace: "shop"}, nil)
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(printed).To(Equal("web Running\ndb Pending\n"), "a line for each pod of the namespace, with its name and its phase")

	_, err = output(t, func() error {
		return listPods(t.Context(), example.Cluster{Config: &rest.Config{Host: server.URL}, Namespace: "elsewhere"}, nil)
	})
	g.Expect(err).To(MatchError(ContainSubstring("list pods")), "an error says what was tried")
}

// output returns what a function prints.
func output(t *testing.T, do func() error) (string, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = writer
	failure := do()
	os.Stdout = stdout
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed), failure
}
