package managertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are the kinds that an API server knows: by group and version, then by resource, such as pods.
type Kinds map[schema.GroupVersion]map[string]string

// APIServer behaves like the API server of a cluster without objects.
type APIServer struct {
	Kinds Kinds
	// Unknown is a group in Kinds that the server does not know after all.
	Unknown string
	// Silent makes the server leave lists and watches unanswered.
	Silent bool

	mutex    sync.Mutex
	requests []string
}

// Start serves until the test ends, without TLS.
func (s *APIServer) Start(t *testing.T) (address string) {
	answers := s.answers()
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		s.record(request)
		isWatch := request.URL.Query().Get("watch") != ""
		listsByWatch := request.URL.Query().Get("sendInitialEvents") != ""
		answer, found := answers[request.URL.Path]
		_, isList := answer.(metav1.List)
		switch {
		case isList && s.Silent, isWatch && !listsByWatch:
			<-request.Context().Done()
		case isWatch:
			http.Error(reply, "list instead", http.StatusBadRequest)
		case !found:
			http.NotFound(reply, request)
		default:
			reply.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(reply).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// Requests returns the requests so far, such as "GET /api/v1/pods?limit=500".
func (s *APIServer) Requests() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

func (s *APIServer) record(request *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request.Method+" "+request.URL.RequestURI())
}

// answers returns the kinds, and empty lists of their objects, by the path of the request.
func (s *APIServer) answers() map[string]any {
	groups := metav1.APIGroupList{}
	answers := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}, "/apis": &groups}
	for version, resources := range s.Kinds {
		path := "/apis/" + version.String()
		switch {
		case version == corev1.SchemeGroupVersion:
			path = "/api/v1"
		case version.Group == s.Unknown:
			continue
		default:
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{
				{GroupVersion: version.String(), Version: version.Version},
			}})
		}
		list := metav1.APIResourceList{GroupVersion: version.String()}
		for resource, kind := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}})
			answers[path+"/"+resource] = metav1.List{
				TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: kind + "List"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			}
		}
		answers[path] = list
	}
	return answers
}
