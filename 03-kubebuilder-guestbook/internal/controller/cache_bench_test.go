//workshop:given 3.3a

package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// benchObjects is the number of objects in the cache that is measured.
	benchObjects = 2000
	// settingsSize is the size of a ConfigMap's content, in bytes.
	settingsSize = 20_000
)

// BenchmarkCacheTransform measures the memory that an object takes in the cache
// of an informer: go test -run '^$' -bench CacheTransform ./internal/controller
func BenchmarkCacheTransform(b *testing.B) {
	pod := readPod(b)
	objects := []struct {
		name      string
		make      func(i int) client.Object
		transform toolscache.TransformFunc
	}{
		{name: "ConfigMap", make: benchSettings, transform: keepDigest},
		{name: "Pod", make: func(i int) client.Object { return decodePod(b, pod, i) }, transform: keepReadiness},
	}
	whole := func(object any) (any, error) { return object, nil }
	for _, object := range objects {
		b.Run(object.name+"/whole", func(b *testing.B) { measureCache(b, object.make, whole) })
		b.Run(object.name+"/without managed fields", func(b *testing.B) { measureCache(b, object.make, cache.TransformStripManagedFields()) })
		b.Run(object.name+"/as the controller keeps it", func(b *testing.B) { measureCache(b, object.make, object.transform) })
	}
}

// measureCache fills a cache, and reports by how much the heap grows for each object.
func measureCache(b *testing.B, makeObject func(i int) client.Object, transform toolscache.TransformFunc) {
	var grown int64
	for b.Loop() {
		before := heapSize()
		indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		for i := range benchObjects {
			kept, err := transform(makeObject(i))
			if err != nil {
				b.Fatal(err)
			}
			if err := indexer.Add(kept); err != nil {
				b.Fatal(err)
			}
		}
		grown += heapSize() - before
		runtime.KeepAlive(indexer)
	}
	b.ReportMetric(float64(grown)/float64(b.N)/benchObjects, "B/object")
	b.ReportMetric(0, "ns/op") // hide the time: making the objects takes most of it
}

func heapSize() int64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // the first run may leave objects that have finalizers
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// benchSettings returns a ConfigMap with two pages, and managed fields as kubectl leaves them.
func benchSettings(i int) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("shop-%d", i%20), Name: fmt.Sprintf("settings-%d", i),
			UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), ResourceVersion: fmt.Sprint(1000 + i),
			CreationTimestamp: metav1.NewTime(noon),
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{Time: noon},
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:about.html.template":{},"f:index.html.template":{}}}`),
			}},
		},
		Data: map[string]string{
			"index.html.template": strings.Repeat("a", settingsSize/2),
			"about.html.template": strings.Repeat("b", settingsSize/2),
		},
	}
}

func readPod(b *testing.B) []byte {
	content, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		b.Fatal(err)
	}
	pod, err := yaml.YAMLToJSON(content)
	if err != nil {
		b.Fatal(err)
	}
	return pod
}

// decodePod decodes the pod anew on each call, so that no two pods share memory.
func decodePod(b *testing.B, content []byte, i int) client.Object {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(content, pod); err != nil {
		b.Fatal(err)
	}
	pod.Namespace, pod.Name = fmt.Sprintf("shop-%d", i%20), fmt.Sprintf("%s-%d", pod.Name, i)
	return pod
}
