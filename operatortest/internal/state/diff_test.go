package state

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDifference(t *testing.T) {
	object := func(image string) map[string]any {
		return map[string]any{"kind": "Deployment", "spec": map[string]any{"image": image, "replicas": int64(2)}}
	}
	wanted := Snapshot{"ConfigMap/a": map[string]any{"kind": "ConfigMap"}, "Deployment/web": object("one"), "outside": "a"}
	tests := map[string]struct {
		found Snapshot
		want  string
	}{
		"the same": {wanted, ""},
		"a changed field, a missing object and an additional one": {
			Snapshot{"Deployment/web": object("two"), "outside": "b", "Secret/b": map[string]any{"kind": "Secret"}},
			`ConfigMap/a:
@@ -1 +0,0 @@
-kind: ConfigMap
Deployment/web:
@@ -1,4 +1,4 @@
 kind: Deployment
 spec:
-  image: one
+  image: two
   replicas: 2
Secret/b:
@@ -0,0 +1 @@
+kind: Secret
outside:
@@ -1 +1 @@
-a
+b`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(test.found.Difference(wanted)).To(Equal(test.want)) })
	}
}
