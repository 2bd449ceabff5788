package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// confinement contains the arguments of [Tap.Confine].
type confinement struct {
	namespaces []string
	namespaced func(Request) bool
}

// Confine restricts the operator's requests for all namespaces to the given namespaces. If only one is given, they
// become requests for that one. If several are given, the Tap removes the objects in all other namespaces from the
// replies to lists and watches. Requests that name a namespace are left unchanged, and so are those for cluster-scoped
// resources. namespaced reports whether a request's resource is namespaced.
func (t *Tap) Confine(namespaced func(Request) bool, namespaces ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.confinement = &confinement{namespaces: namespaces, namespaced: namespaced}
}

// confined changes a request as Confine specifies. It returns the namespaces to which the reply must be restricted, or
// nil if the operator may see the whole reply.
func (t *Tap) confined(request *http.Request, parsed *Request) []string {
	t.mu.Lock()
	confinement := t.confinement
	t.mu.Unlock()
	if confinement == nil || parsed.Resource == "" || parsed.Namespace != "" || !asksForAll(parsed.Verb) || !confinement.namespaced(*parsed) {
		return nil
	}
	parsed.Confined = true
	if len(confinement.namespaces) > 1 {
		return confinement.namespaces
	}
	// The resource is the last part of the path.
	path := strings.TrimSuffix(request.URL.Path, "/")
	cut := strings.LastIndex(path, "/")
	request.URL.Path = path[:cut] + "/namespaces/" + confinement.namespaces[0] + path[cut:]
	request.URL.RawPath = ""
	parsed.Path, parsed.Namespace = request.URL.Path, confinement.namespaces[0]
	return nil
}

func asksForAll(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// onlyIn removes the objects outside the given namespaces from the reply to a list.
func onlyIn(namespaces []string, response *http.Response) (*http.Response, error) {
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read a list across all namespaces: %w", err)
	}
	var list map[string]json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("read a list across all namespaces: %w", err)
	}
	field := "items"
	if _, isTable := list["rows"]; isTable { // kubectl get asks for one
		field = "rows"
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list[field], &items); err != nil {
		return nil, fmt.Errorf("read the %s in a list across all namespaces: %w", field, err)
	}
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool {
		var found struct {
			metav1.PartialObjectMetadata
			Object metav1.PartialObjectMetadata // of a row
		}
		return json.Unmarshal(item, &found) == nil && !slices.Contains(namespaces, found.Namespace+found.Object.Namespace)
	})
	if list[field], err = json.Marshal(items); err != nil {
		return nil, err
	}
	if content, err = json.Marshal(list); err != nil {
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	response.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return response, nil
}
