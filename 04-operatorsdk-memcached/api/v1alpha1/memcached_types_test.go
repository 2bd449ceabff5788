package v1alpha1

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	g.Expect(scheme.Recognizes(SchemeGroupVersion.WithKind("WatchEvent"))).To(BeTrue(), "clients need it to watch Memcacheds")
}

func TestMemcachedInJSON(t *testing.T) {
	tests := map[string]struct {
		memcached Memcached
		want      string
	}{
		"what is not set is left to the API server": {
			memcached: Memcached{ObjectMeta: metav1.ObjectMeta{Name: "sessions"}, Spec: MemcachedSpec{Size: 1}},
			want:      `{"metadata":{"name":"sessions"},"spec":{"size":1}}`,
		},
		"a required size is sent even if it is zero, so that it is refused": {
			want: `{"spec":{"size":0}}`,
		},
		"all fields": {
			memcached: Memcached{
				Spec: MemcachedSpec{Size: 2, ContainerPort: 12000, MemoryMegabytes: 128, Image: "memcached:1"},
				Status: MemcachedStatus{Nodes: []string{"a", "b"}, Replicas: 3, ReadyReplicas: 2, Selector: "x=y", ObservedGeneration: 3,
					Conditions: []metav1.Condition{{Type: ConditionAvailable, Status: metav1.ConditionTrue, Reason: ReasonEnoughPods, Message: "m"}}},
			},
			want: `{"spec":{"size":2,"containerPort":12000,"memoryMegabytes":128,"image":"memcached:1"},
				"status":{"nodes":["a","b"],"replicas":3,"readyReplicas":2,"selector":"x=y","observedGeneration":3,
				"conditions":[{"type":"Available","status":"True","reason":"EnoughPods","message":"m","lastTransitionTime":null}]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(json.Marshal(test.memcached)).To(MatchJSON(test.want))
			copied := test.memcached.DeepCopy()
			g.Expect(copied).To(HaveValue(Equal(test.memcached)))
			for i := range copied.Status.Nodes {
				copied.Status.Nodes[i] = "changed"
				g.Expect(test.memcached.Status.Nodes[i]).NotTo(Equal("changed"), "a copy must not share memory with the cache's object")
			}
		})
	}
}

func TestFinalizerBelongsToTheGroup(t *testing.T) {
	NewWithT(t).Expect(Finalizer).To(HavePrefix(SchemeGroupVersion.Group+"/"), "so people know whose it is")
}
