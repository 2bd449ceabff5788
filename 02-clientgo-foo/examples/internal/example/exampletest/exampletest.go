// Package exampletest contains the helpers that the tests of the examples share.
package exampletest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
)

// Namespace is the namespace in the Cluster that Serve returns.
const Namespace = "shop"

// Serve runs a small API server until the test ends. It calls answer for each GET of the path, and answers all other
// requests with a 404.
func Serve(t *testing.T, path string, answer http.HandlerFunc) example.Cluster {
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet || request.URL.Path != path {
			http.NotFound(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		answer(response, request)
	}))
	t.Cleanup(server.Close)
	return example.Cluster{Config: &rest.Config{Host: server.URL}, Namespace: Namespace}
}

// JSON returns a handler that answers with the object as JSON.
func JSON(object any) http.HandlerFunc {
	return func(response http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(response).Encode(object) }
}

// outputTimeout is how long OutputUntil waits for the strings before it cancels the function's context.
const outputTimeout = 10 * time.Second

// Output returns what a function prints, and the function's error.
func Output(t *testing.T, do func() error) (string, error) {
	return OutputUntil(t, nil, func(context.Context) error { return do() })
}

// OutputUntil returns what a function prints, and the function's error. It cancels the function's context, as Ctrl-C
// does, when the function has printed all of the strings in texts, or after outputTimeout. If texts is empty, only the
// timeout cancels it.
func OutputUntil(t *testing.T, texts []string, do func(context.Context) error) (string, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithTimeout(t.Context(), outputTimeout)
	defer interrupt()
	printed := make(chan string, 1)
	go func() {
		var text strings.Builder
		chunk := make([]byte, 1024)
		for {
			n, err := reader.Read(chunk)
			text.Write(chunk[:n])
			missing := func(wanted string) bool { return !strings.Contains(text.String(), wanted) }
			if len(texts) > 0 && !slices.ContainsFunc(texts, missing) {
				interrupt()
			}
			if err != nil {
				printed <- text.String()
				return
			}
		}
	}()
	stdout := os.Stdout
	os.Stdout = writer
	failure := do(ctx)
	os.Stdout = stdout
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return <-printed, failure
}
