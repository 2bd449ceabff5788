package doks_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/doks"
)

// FuzzRequest sends arbitrary requests. If a response has a body, it must be JSON, unless it is a kubeconfig or a
// fault's page. A response without a body must be a 202 or a 204.
func FuzzRequest(f *testing.F) {
	id := "11111111-1111-4111-8111-111111111111"
	for _, seed := range [][3]string{
		{"GET", "/v2/kubernetes/options", ""},
		{"POST", "/v2/kubernetes/clusters", body()},
		{"POST", "/v2/kubernetes/clusters", body(`node_pools=[` + pool("auto_scale=true", "min_nodes=1", "max_nodes=3") + `]`)},
		{"PUT", "/v2/kubernetes/clusters/" + id, `{"name":"demo","ha":true,"tags":["a"]}`},
		{"GET", "/v2/kubernetes/clusters?page=2&per_page=1", ""},
		{"GET", "/v2/kubernetes/clusters/" + id + "/kubeconfig?expiry_seconds=9223372036854775807", ""},
		{"POST", "/v2/kubernetes/clusters/" + id + "/upgrade", `{"version":"latest"}`},
		{"POST", "/v2/kubernetes/clusters/" + id + "/node_pools", pool(`name="more"`)},
		{"PUT", "/v2/kubernetes/clusters/" + id + "/node_pools/" + id, `{"name":"a","count":3}`},
		{"DELETE", "/v2/kubernetes/clusters/" + id + "/destroy_with_associated_resources/selective", `{"volumes":null}`},
		{"DELETE", "/v2/kubernetes/clusters/" + id, ""},
		{"POST", "/emulator/faults", `{"kind":"429"}`},
		{"POST", "/emulator/clusters/" + id + "/state", `{"state":"running"}`},
		{"GET", "/emulator/journal", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, target, content string) {
		cloud, err := doks.New(doks.Options{Tokens: []string{fullToken}, DropletLimit: 10})
		if err != nil {
			t.Fatal(err)
		}
		known := exchange(t, cloud, http.MethodPost, clustersURL, body(`name="known"`))
		if known.Code != http.StatusCreated {
			t.Fatalf("the first create request was refused: %s", known.Body)
		}
		made := cloud.Clusters()[0]
		// The seeds' placeholder ID is replaced by an existing one: first the cluster's, then the pool's.
		target = strings.Replace(target, id, made.ID, 1)
		target = strings.Replace(target, id, made.NodePools[0].ID, 1)
		for range 2 {
			checkAnswer(t, exchange(t, cloud, method, target, content))
			checkAnswer(t, exchange(t, cloud, http.MethodGet, clustersURL, ""))
		}
	})
}

// exchange makes a request without a network. If the emulator drops the connection, the response's code is 0.
func exchange(t *testing.T, handler http.Handler, method, target, content string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the faults may include a delay
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1", strings.NewReader(content))
	if err != nil {
		t.Skip("net/http doesn't accept such a request")
	}
	path, query, _ := strings.Cut(target, "?")
	request.URL.Path, request.URL.RawQuery = path, query
	request.Header.Set("Authorization", "Bearer "+fullToken)
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken != nil {
			if failed, ok := broken.(error); !ok || !errors.Is(failed, http.ErrAbortHandler) {
				panic(broken)
			}
			answer.Code = 0
		}
	}()
	handler.ServeHTTP(answer, request)
	return answer
}

func checkAnswer(t *testing.T, answer *httptest.ResponseRecorder) {
	kind := answer.Header().Get("Content-Type")
	switch {
	case answer.Code == 0 || kind == "text/html" || kind == "application/yaml":
		return // a broken connection, a fault's page, or a kubeconfig
	case answer.Body.Len() == 0:
		if answer.Code != http.StatusNoContent && answer.Code != http.StatusAccepted {
			t.Errorf("the answer %d has no body", answer.Code)
		}
	case kind != "application/json" || !json.Valid(answer.Body.Bytes()):
		t.Errorf("the answer %d is not JSON (%s): %s", answer.Code, kind, answer.Body)
	}
}

// FuzzParseFault parses arbitrary strings. An emulator must accept every fault that ParseFault returns.
func FuzzParseFault(f *testing.F) {
	f.Add("POST /v2/kubernetes/clusters drop after count=2")
	f.Add("* * lagging-list delay=1h skip=3")
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := doks.ParseFault(text)
		if err != nil {
			return
		}
		cloud, err := doks.New(doks.Options{Tokens: []string{fullToken}, Faults: []doks.Fault{fault}})
		if err != nil {
			t.Fatal(err)
		}
		if len(cloud.Faults()) != 1 {
			t.Errorf("the fault %q was not added", text)
		}
	})
}
