package load

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestAsCreated(t *testing.T) {
	for name, test := range map[string]struct{ found, wanted string }{
		"additions of the API server, controllers and the operator are removed": {
			found: `
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: default
  name: load-1
  labels: {app: load-1}
  annotations: {deployment.kubernetes.io/revision: "1", note: stays}
  uid: "7"
  resourceVersion: "8"
  generation: 1
  creationTimestamp: "2026-11-21T10:00:01Z"
  finalizers: [example.com/hold]
  ownerReferences: [{apiVersion: example.com/v1, kind: Foo, name: load-1, uid: "6", controller: true}]
  managedFields: [{manager: foo}]
spec: {replicas: 2}
status: {replicas: 2}
`,
			wanted: `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: default, name: load-1, labels: {app: load-1}, annotations: {note: stays}}
spec: {replicas: 2}
`,
		},
		"no annotation is left": {
			found: `
kind: Deployment
metadata: {namespace: default, name: load-1, annotations: {deployment.kubernetes.io/revision: "1"}}
`,
			wanted: `
kind: Deployment
metadata: {namespace: default, name: load-1}
`,
		},
		"a Service gets other addresses": {
			found: `
kind: Service
metadata: {namespace: default, name: load-1}
spec: {clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], type: ClusterIP}
`,
			wanted: `
kind: Service
metadata: {namespace: default, name: load-1}
spec: {type: ClusterIP}
`,
		},
		"a headless Service stays headless": {
			found: `
kind: Service
metadata: {namespace: default, name: load-1}
spec: {clusterIP: None, clusterIPs: [None]}
`,
			wanted: `
kind: Service
metadata: {namespace: default, name: load-1}
spec: {clusterIP: None, clusterIPs: [None]}
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := parse(t, test.found)
			before := found.DeepCopy()
			g := NewWithT(t)
			g.Expect(asCreated(found)).To(Equal(parse(t, test.wanted)), "see asCreated in children.go")
			g.Expect(found).To(Equal(before), "the object found must stay as it is")
		})
	}
}

func TestIsResource(t *testing.T) {
	ground := &ground{plan: &plan{Resource: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Gauge"}}}
	for name, test := range map[string]struct {
		owner  *metav1.OwnerReference
		wanted bool
	}{
		"a resource":                    {owner: &metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Gauge"}, wanted: true},
		"a resource in another version": {owner: &metav1.OwnerReference{APIVersion: "test.example.com/v2", Kind: "Gauge"}, wanted: true},
		"a kind of another group":       {owner: &metav1.OwnerReference{APIVersion: "v1", Kind: "Gauge"}},
		"another kind":                  {owner: &metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Dial"}},
		"no owner":                      {},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ground.isResource(test.owner)).To(Equal(test.wanted))
		})
	}
}
