package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAddToScheme(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	for kind, object := range map[string]runtime.Object{"Memcached": &Memcached{}, "MemcachedList": &MemcachedList{}} {
		kinds, _, err := scheme.ObjectKinds(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kinds).To(ConsistOf(schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: kind}))
	}
	g.Expect(scheme.Recognizes(SchemeGroupVersion.WithKind("WatchEvent"))).To(BeTrue(), "clients need this kind to watch Memcacheds")
}

func TestMemcachedInJSON(t *testing.T) {
	const all = `{"spec":{"size":2,"containerPort":12000,"memoryMegabytes":128,"image":"memcached:1"},
		"status":{"nodes":["a","b"],"replicas":3,"readyReplicas":2,"selector":"x=y","observedGeneration":3,
		"conditions":[{"type":"Available","status":"True","reason":"EnoughPods","message":"m","lastTransitionTime":null}]}}`
	const few = `{"metadata":{"name":"sessions"},"spec":{"size":1}}`
	tests := map[string]struct{ read, want string }{
		"all fields are set": {read: all, want: all},
		//workshop:step 4.14a
		"the connection limit is set":                               {read: `{"spec":{"size":1,"maxConnections":512}}`, want: `{"spec":{"size":1,"maxConnections":512}}`},
		"fields that are not set are left to the API server":        {read: few, want: few},
		"a size of zero is sent, so that the API server refuses it": {read: `{}`, want: `{"spec":{"size":0}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := &Memcached{}
			decoder := json.NewDecoder(strings.NewReader(test.read))
			decoder.DisallowUnknownFields()
			g.Expect(decoder.Decode(memcached)).To(Succeed(), "each field must have its JSON name in its tag, see memcached_types.go")
			g.Expect(json.Marshal(memcached)).To(MatchJSON(test.want))
			copied := memcached.DeepCopy()
			g.Expect(copied).To(Equal(memcached))
			for i := range copied.Status.Nodes {
				copied.Status.Nodes[i] = "changed"
				g.Expect(memcached.Status.Nodes[i]).NotTo(Equal("changed"), "a copy must not share memory with the cache's object")
			}
		})
	}
}

func TestFinalizerBelongsToTheGroup(t *testing.T) {
	NewWithT(t).Expect(Finalizer).To(HavePrefix(SchemeGroupVersion.Group+"/"), "the finalizer must begin with the API group, so that people can tell which operator it belongs to")
}
