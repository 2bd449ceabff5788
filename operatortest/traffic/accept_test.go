package traffic

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func TestAcceptJSON(t *testing.T) {
	tests := map[string]struct {
		accept []string
		want   []string
	}{
		"nothing":                   {nil, nil},
		"JSON":                      {[]string{"application/json"}, []string{"application/json"}},
		"anything":                  {[]string{"application/json, */*"}, []string{"application/json, */*"}},
		"a Go client's protobuf":    {[]string{"application/vnd.kubernetes.protobuf,application/json"}, []string{"application/json,application/json"}},
		"two headers, and capitals": {[]string{"Application/CBOR", "application/yaml;q=0.5"}, []string{"application/json,application/json;q=0.5"}},
		"a watch of metadata in protobuf": {
			[]string{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"},
			[]string{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"},
		},
		"kubectl's table": {
			[]string{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"},
			[]string{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"},
		},
		"OpenAPI, which isn't an object": {
			[]string{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}, []string{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for _, accept := range test.accept {
				header.Add("Accept", accept)
			}
			acceptJSON(header)
			NewWithT(t).Expect(header.Values("Accept")).To(Equal(test.want))
		})
	}
}

// choosy starts an API server that replies in protobuf if a request prefers that, and otherwise in JSON. Its JSON is a
// ConfigMap, or only the metadata of one if the request asks for that; its protobuf can't be decoded.
func choosy(t *testing.T) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		accepted := request.Header.Get("Accept")
		if strings.HasPrefix(accepted, runtime.ContentTypeProtobuf) {
			reply.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			_, _ = io.WriteString(reply, "k8s\x00")
			return
		}
		reply.Header().Set("Content-Type", runtime.ContentTypeJSON)
		object := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"here","name":"settings","resourceVersion":"7"}}`
		if !strings.Contains(accepted, "as=PartialObjectMetadata") {
			object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"here","name":"settings","resourceVersion":"7"}}`
		}
		if request.URL.Query().Has("watch") {
			object = `{"type":"ADDED","object":` + object + `}`
		}
		_, _ = io.WriteString(reply, object+"\n")
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// client-go's metadata client asks for protobuf, whatever its rest.Config says. controller-runtime's cache uses it for
// watches with builder.OnlyMetadata.
func TestMetadataClient(t *testing.T) {
	g, tap := NewWithT(t), New()
	clients, err := metadata.NewForConfig(tap.Config(choosy(t)))
	g.Expect(err).NotTo(HaveOccurred())
	configMaps := clients.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("here")

	found, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Name).To(Equal("settings"))

	seen, err := configMaps.Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer seen.Stop()
	g.Expect(next(g, seen)).To(Equal("ADDED settings 7"))
	g.Expect(tap.Events()).To(ConsistOf(And(HaveField("Name", "settings"), HaveField("Version", "7"))))
}

func TestClientThatChoosesProtobuf(t *testing.T) {
	g, tap := NewWithT(t), New()
	config := tap.Config(choosy(t))
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	clients, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	seen, err := clients.CoreV1().ConfigMaps("here").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer seen.Stop()
	g.Expect(next(g, seen)).To(Equal("ADDED settings 7"))
}
