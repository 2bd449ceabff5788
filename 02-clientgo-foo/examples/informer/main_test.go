package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example/exampletest"
)

func configMap(name, resourceVersion string) corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: exampletest.Namespace, Name: name, ResourceVersion: resourceVersion},
	}
}

// serveConfigMaps lists one ConfigMap, and sends some changes to each watch that follows a list.
func serveConfigMaps(response http.ResponseWriter, request *http.Request) {
	encoder := json.NewEncoder(response)
	switch query := request.URL.Query(); {
	case query.Get("watch") == "":
		_ = encoder.Encode(corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []corev1.ConfigMap{configMap("first", "1")},
		})
	case query.Get("sendInitialEvents") != "":
		// Answer like an API server that doesn't support streaming lists. The informer then sends a list request.
		response.WriteHeader(http.StatusUnprocessableEntity)
		_ = encoder.Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
	default:
		send := func(kind watch.EventType, object corev1.ConfigMap) {
			_ = encoder.Encode(map[string]any{"type": kind, "object": object})
		}
		send(watch.Added, configMap("second", "2"))
		send(watch.Modified, configMap("second", "3"))
		send(watch.Deleted, configMap("first", "4"))
		_ = http.NewResponseController(response).Flush()
		<-request.Context().Done()
	}
}

func TestWatchConfigMaps(t *testing.T) {
	g := NewWithT(t)
	cluster := exampletest.Serve(t, "/api/v1/namespaces/shop/configmaps", serveConfigMaps)
	last := []string{"The cache is filled", "deleted"} // in either order
	printed, err := exampletest.OutputUntil(t, last, func(ctx context.Context) error { return watchConfigMaps(ctx, cluster, nil) })
	g.Expect(err).NotTo(HaveOccurred(), "Ctrl-C must end the program without an error")
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	g.Expect(lines).To(ConsistOf(
		MatchRegexp("^The cache is filled. ConfigMaps in it: [12]$"),
		Equal("added shop/first"), Equal("added shop/second"), Equal("updated shop/second"), Equal("deleted shop/first")))
	g.Expect(lines[0]).To(Equal("added shop/first"), "an object that already exists must be reported as added")
}
