package traffic

import (
	"net/http"
	"strings"
)

// Confine makes the Tap show the operator only one namespace: requests for all namespaces become requests for this
// one. namespaced reports whether a request's resource is namespaced. Creates, and requests for a single object,
// always name their namespace.
func (t *Tap) Confine(namespace string, namespaced func(Request) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.confine = func(request *http.Request, parsed *Request) {
		if parsed.Resource == "" || parsed.Namespace != "" || !asksForAll(parsed.Verb) || !namespaced(*parsed) {
			return
		}
		// The resource is the last part of the path.
		path := strings.TrimSuffix(request.URL.Path, "/")
		cut := strings.LastIndex(path, "/")
		request.URL.Path = path[:cut] + "/namespaces/" + namespace + path[cut:]
		request.URL.RawPath = ""
		parsed.Path, parsed.Namespace, parsed.Confined = request.URL.Path, namespace, true
	}
}

func asksForAll(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// confined changes a request as Confine specifies, if Confine was called.
func (t *Tap) confined(request *http.Request, parsed *Request) {
	t.mu.Lock()
	confine := t.confine
	t.mu.Unlock()
	if confine != nil {
		confine(request, parsed)
	}
}
