package trial

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/operatortest"
)

// seenIn returns a trial that has seen these versions of objects. The sample's kind is Web; each Web counts as deleted.
func seenIn(versions ...*unstructured.Unstructured) *Trial {
	sample := &unstructured.Unstructured{}
	sample.SetAPIVersion("example.com/v1")
	sample.SetKind("Web")
	followed := make([]version, len(versions))
	for i, seen := range versions {
		followed[i] = version{Unstructured: seen}
		if seen.GetKind() == "Web" {
			followed[i].gone = true
		}
	}
	children := []operatortest.Child{{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}}
	runner := &Runner{Operator: operatortest.Operator{Children: children}, Sample: sample, store: &store{followed: map[string][]version{"spec-1": followed}}}
	return &Trial{Runner: runner, Namespace: "spec-1", id: "crash/somewhere", Foreign: map[types.UID]bool{"foreign": true}}
}

func settings(uid types.UID, data map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"data": data}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	object.SetName("spec-1-settings")
	object.SetUID(uid)
	return object
}

func TestHistory(t *testing.T) {
	generated := func(uid types.UID) *unstructured.Unstructured {
		object := settings(uid, nil)
		object.SetName("settings-" + string(uid))
		object.SetGenerateName("settings-")
		return object
	}
	ofOther := settings("other", nil)
	ofOther.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: new(true)}})
	ofEarlier := settings("a", nil)
	ofEarlier.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1beta1", Kind: "Web", Controller: new(true)}})
	at := func(object *unstructured.Unstructured, revision string) *unstructured.Unstructured {
		object.SetResourceVersion(revision)
		return object
	}
	deleted := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Web"}}
	size := func(value any) *unstructured.Unstructured { return settings("a", map[string]any{"size": value}) }
	tests := map[string]struct {
		versions []*unstructured.Unstructured
		want     History
	}{
		"nothing": {want: History{}},
		"created once, and seen again": {
			versions: []*unstructured.Unstructured{size("1"), size("1")},
			want:     History{"ConfigMap <namespace>-settings was created": 1},
		},
		"created with an owner reference of an earlier version": {
			versions: []*unstructured.Unstructured{ofEarlier},
			want:     History{"ConfigMap <namespace>-settings was created": 1},
		},
		"created again": {
			versions: []*unstructured.Unstructured{settings("a", nil), settings("b", nil)},
			want:     History{"ConfigMap <namespace>-settings was created": 2},
		},
		"created twice, under generated names": {
			versions: []*unstructured.Unstructured{generated("a"), generated("b")},
			want:     History{"ConfigMap settings-* was created": 2},
		},
		"changed, and changed again": {
			versions: []*unstructured.Unstructured{size("1"), size("2"), size("3")},
			want:     History{"ConfigMap <namespace>-settings was created": 1},
		},
		"changed back and forth": {
			versions: []*unstructured.Unstructured{size("1"), size(""), size("1"), size("")},
			want: History{
				"ConfigMap <namespace>-settings was created":                   1,
				`data.size of ConfigMap <namespace>-settings went back to "1"`: 1, `data.size of ConfigMap <namespace>-settings went back to ""`: 1,
			},
		},
		"a field that was removed and set again": {
			versions: []*unstructured.Unstructured{size("1"), settings("a", map[string]any{}), size("1")},
			want: History{
				"ConfigMap <namespace>-settings was created": 1, `data.size of ConfigMap <namespace>-settings went back to "1"`: 1,
			},
		},
		"a new object of the same name has no earlier values": {
			versions: []*unstructured.Unstructured{size("1"), size("2"), settings("b", map[string]any{"size": "1"})},
			want:     History{"ConfigMap <namespace>-settings was created": 2},
		},
		"repaired once more after the resource was deleted": {
			versions: []*unstructured.Unstructured{at(settings("a", nil), "7"), at(settings("b", nil), "11"), at(deleted, "10")},
			want:     History{"ConfigMap <namespace>-settings was created": 1},
		},
		"others' objects": {versions: []*unstructured.Unstructured{settings("foreign", nil), ofOther}, want: History{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			trial := seenIn(test.versions...)
			g.Expect(trial.NoteHistory()).To(Succeed())
			g.Expect(trial.Histories()).To(HaveExactElements(Lived{Trial: "crash/somewhere", History: test.want}))
		})
	}
}

func TestHistoryLeavesOutStatusChanges(t *testing.T) {
	g := NewWithT(t)
	var versions []*unstructured.Unstructured
	for i := range 4 {
		version := settings("a", nil)
		version.Object["status"] = map[string]any{"ready": fmt.Sprint(i % 2)}
		version.SetResourceVersion(fmt.Sprint(i % 2))
		versions = append(versions, version)
	}
	trial := seenIn(versions...)
	g.Expect(trial.NoteHistory()).To(Succeed())
	g.Expect(trial.Histories()[0].History).To(Equal(History{"ConfigMap <namespace>-settings was created": 1}))
}

func TestBeyond(t *testing.T) {
	g := NewWithT(t)
	reference := History{"a was created": 1, "b was created": 2}
	g.Expect(History{"a was created": 1, "b was created": 1}.Beyond(reference)).To(BeEmpty(), "fewer times than in the reference must be accepted")
	g.Expect(History{"c went back": 1, "b was created": 3, "a was created": 2}.Beyond(reference)).To(HaveExactElements(
		"a was created 2 times, and once in an undisturbed lifecycle",
		"b was created 3 times, and 2 times in an undisturbed lifecycle",
		"c went back once, and never in an undisturbed lifecycle",
	))
}
