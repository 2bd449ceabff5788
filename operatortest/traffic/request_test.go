package traffic

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const configMaps = "/api/v1/namespaces/here/configmaps"

func TestParse(t *testing.T) {
	tests := map[string]struct {
		method, url, body string
		// media is the content type.
		media string
		want  Request
	}{
		"a get in the core group": {
			method: http.MethodGet, url: configMaps + "/settings",
			want: Request{Verb: "get", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a get in another group": {
			method: http.MethodGet, url: "/apis/apps/v1/namespaces/here/deployments/web",
			want: Request{Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "here", Name: "web"},
		},
		"a list in all namespaces": {
			method: http.MethodGet, url: "/apis/apps/v1/deployments",
			want: Request{Verb: "list", Group: "apps", Version: "v1", Resource: "deployments"},
		},
		"a list of one name": {
			method: http.MethodGet, url: configMaps + "?fieldSelector=metadata.name%3Dsettings",
			want: Request{Verb: "list", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a list with an invalid selector": {
			method: http.MethodGet, url: configMaps + "?fieldSelector=metadata.name",
			want: Request{Verb: "list", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a watch": {
			method: http.MethodGet, url: configMaps + "?watch=true&resourceVersion=7",
			want: Request{Verb: "watch", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a watch that begins with a list": {
			method: http.MethodGet, url: configMaps + "?watch=1&sendInitialEvents=true",
			want: Request{Verb: "watch", Version: "v1", Resource: "configmaps", Namespace: "here", Lists: true},
		},
		"a create, whose name is in the body": {
			method: http.MethodPost, url: configMaps, body: `{"metadata":{"name":"settings"}}`,
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a dry run of a create": {
			method: http.MethodPost, url: configMaps + "?dryRun=All", body: `{"metadata":{"name":"settings"}}`,
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings", DryRun: true},
		},
		"a create with a generated name": {
			method: http.MethodPost, url: configMaps, body: `{"metadata":{"generateName":"settings-"}}`,
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings-*"},
		},
		"a create in protobuf": {
			method: http.MethodPost, url: configMaps, body: protobufOf(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}),
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a create in protobuf in another group": {
			method: http.MethodPost, url: "/apis/apps/v1/namespaces/here/deployments", body: protobufOf(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}),
			want: Request{Verb: "create", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "here", Name: "web"},
		},
		"a create in protobuf with a generated name": {
			method: http.MethodPost, url: configMaps, body: protobufOf(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-"}}),
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings-*"},
		},
		"a create in protobuf without a name": {
			method: http.MethodPost, url: configMaps, body: protobufOf(t, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}}),
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a create in protobuf of an unknown kind": {
			method: http.MethodPost, url: configMaps, body: protobufOf(t, &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "example.com/v1", Kind: "Foo"}}),
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a create whose body is damaged": {
			method: http.MethodPost, url: configMaps, body: "k8s\x00\x0a",
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a create whose body is empty": {
			method: http.MethodPost, url: configMaps,
			want: Request{Verb: "create", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a create of a subresource": {
			method: http.MethodPost, url: "/api/v1/namespaces/here/pods/web-0/eviction", body: `{"metadata":{"name":"other"}}`,
			want: Request{Verb: "create", Version: "v1", Resource: "pods", Subresource: "eviction", Namespace: "here", Name: "web-0"},
		},
		"an update of a status": {
			method: http.MethodPut, url: "/apis/example.com/v1/namespaces/here/foos/foo/status",
			want: Request{Verb: "update", Group: "example.com", Version: "v1", Resource: "foos", Subresource: "status", Namespace: "here", Name: "foo"},
		},
		"a patch of a cluster-scoped object": {
			method: http.MethodPatch, url: "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader",
			want: Request{Verb: "patch", Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "reader"},
		},
		"a server-side apply": {
			method: http.MethodPatch, url: configMaps + "/settings?fieldManager=me", media: "application/apply-patch+yaml; charset=utf-8",
			want: Request{Verb: "patch", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings", Applies: true},
		},
		"a merge patch": {
			method: http.MethodPatch, url: configMaps + "/settings", media: "application/merge-patch+json",
			want: Request{Verb: "patch", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a delete": {
			method: http.MethodDelete, url: configMaps + "/settings",
			want: Request{Verb: "delete", Version: "v1", Resource: "configmaps", Namespace: "here", Name: "settings"},
		},
		"a delete of a collection": {
			method: http.MethodDelete, url: configMaps,
			want: Request{Verb: "deletecollection", Version: "v1", Resource: "configmaps", Namespace: "here"},
		},
		"a namespace": {
			method: http.MethodGet, url: "/api/v1/namespaces/here",
			want: Request{Verb: "get", Version: "v1", Resource: "namespaces", Name: "here"},
		},
		"a subresource of a namespace": {
			method: http.MethodPut, url: "/api/v1/namespaces/here/finalize",
			want: Request{Verb: "update", Version: "v1", Resource: "namespaces", Subresource: "finalize", Name: "here"},
		},
		"a path inside a subresource": {
			method: http.MethodGet, url: "/api/v1/namespaces/here/pods/web-0/proxy/metrics/all",
			want: Request{Verb: "get", Version: "v1", Resource: "pods", Subresource: "proxy", Namespace: "here", Name: "web-0"},
		},
		"the discovery of a group": {method: http.MethodGet, url: "/apis/apps/v1", want: Request{Verb: "get"}},
		"the version":              {method: http.MethodGet, url: "/version", want: Request{Verb: "get"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			request, err := http.NewRequest(test.method, "https://127.0.0.1"+test.url, strings.NewReader(test.body))
			g.Expect(err).NotTo(HaveOccurred())
			test.want.Path = request.URL.Path
			request.Header.Set("Content-Type", test.media)

			parsed, err := parse(request)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed).To(Equal(test.want))
			g.Expect(io.ReadAll(request.Body)).To(BeEquivalentTo(test.body), "the body must still be there for the API server")
		})
	}
}

// protobufOf encodes an object as a Go client would send it.
func protobufOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	g := NewWithT(t)
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	var body bytes.Buffer
	g.Expect(serializer.Encode(object, &body)).To(Succeed())
	return body.String()
}

func TestKindsOfRequests(t *testing.T) {
	tests := map[string]struct {
		request                 Request
		isWrite, isEvent, lease bool
		kind                    string
	}{
		"a status patch": {
			request: Request{Verb: "patch", Group: "example.com", Resource: "foos", Subresource: "status"},
			isWrite: true, kind: "patch foos.example.com/status",
		},
		"a dry run of a write": {request: Request{Verb: "create", Resource: "secrets", DryRun: true}, kind: "create secrets"},

		"a list":    {request: Request{Verb: "list", Resource: "pods"}, kind: "list pods"},
		"a watch":   {request: Request{Verb: "watch", Resource: "pods"}, kind: "watch pods"},
		"discovery": {request: Request{Verb: "get", Path: "/apis"}, kind: "get /apis"},
		"a question about permissions": {
			request: Request{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
			kind:    "create subjectaccessreviews.authorization.k8s.io",
		},
		"a question about the user": {
			request: Request{Verb: "create", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
			kind:    "create selfsubjectreviews.authentication.k8s.io",
		},
		"a review of a custom kind": {
			request: Request{Verb: "create", Group: "example.com", Resource: "previews"}, isWrite: true, kind: "create previews.example.com",
		},
		"an event of a custom kind": {
			request: Request{Verb: "create", Group: "example.com", Resource: "events"}, isWrite: true, kind: "create events.example.com",
		},
		"an event of the old group": {request: Request{Verb: "create", Resource: "events"}, isWrite: true, isEvent: true, kind: "create events"},
		"an event of the new group": {
			request: Request{Verb: "patch", Group: "events.k8s.io", Resource: "events"},
			isWrite: true, isEvent: true, kind: "patch events.events.k8s.io",
		},
		"a lease": {
			request: Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"},
			isWrite: true, lease: true, kind: "update leases.coordination.k8s.io",
		},
		"a lease of another group": {
			request: Request{Verb: "update", Group: "example.com", Resource: "leases"}, isWrite: true, kind: "update leases.example.com",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.request.IsWrite()).To(Equal(test.isWrite), "IsWrite")
			g.Expect(test.request.IsEvent()).To(Equal(test.isEvent), "IsEvent")
			g.Expect(test.request.IsLease()).To(Equal(test.lease), "IsLease")
			g.Expect(test.request.Kind()).To(Equal(test.kind), "Kind")
		})
	}
}

func TestLineOfRequestLog(t *testing.T) {
	tests := map[string]struct {
		request Request
		want    string
	}{
		"a reply": {
			request: Request{Verb: "create", Resource: "configmaps", Namespace: "here", Name: "settings", At: 1500 * time.Millisecond, Status: 201},
			want:    "  1.500s  create configmaps here/settings: 201",
		},
		"no reply": {
			request: Request{Verb: "get", Resource: "nodes", Name: "one"}, want: "  0.000s  get nodes one: no reply yet",
		},
		"a note": {
			request: Request{Verb: "list", Resource: "pods", Namespace: "here", Status: 200, Note: "its reply was lost: unexpected EOF"},
			want:    "  0.000s  list pods here/: 200, its reply was lost: unexpected EOF",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(test.request.String()).To(Equal(test.want)) })
	}
}
