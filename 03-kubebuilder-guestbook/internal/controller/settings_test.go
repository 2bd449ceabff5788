//workshop:given 3.3a

package controller

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// storedSettings returns a ConfigMap as the API server returns it.
func storedSettings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "page-settings", UID: "uid-of-settings", ResourceVersion: "20",
			Labels:        map[string]string{"team": "shop"},
			Annotations:   map[string]string{"note": "of a user"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}},
		},
		Data:       map[string]string{"index.html.template": "Welcome", "about.html.template": "About us"},
		BinaryData: map[string][]byte{"logo.png": {0x89, 'P', 'N', 'G'}},
	}
}

func TestDigestOf(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.ConfigMap)
		// differs is true if the pods must be replaced.
		differs bool
	}{
		"nothing changes": {change: func(*corev1.ConfigMap) {}},
		"the keys are in another order": {change: func(settings *corev1.ConfigMap) {
			settings.Data = map[string]string{"about.html.template": "About us", "index.html.template": "Welcome"}
		}},
		"labels, annotations and the version change": {change: func(settings *corev1.ConfigMap) {
			settings.Labels, settings.Annotations, settings.ResourceVersion = nil, map[string]string{"note": "other"}, "21"
		}},
		"a value changes":       {change: func(settings *corev1.ConfigMap) { settings.Data["index.html.template"] = "Hello" }, differs: true},
		"a value becomes empty": {change: func(settings *corev1.ConfigMap) { settings.Data["index.html.template"] = "" }, differs: true},
		"a key is removed":      {change: func(settings *corev1.ConfigMap) { delete(settings.Data, "about.html.template") }, differs: true},
		"a key is added":        {change: func(settings *corev1.ConfigMap) { settings.Data["new.html.template"] = "" }, differs: true},
		"two values are swapped": {change: func(settings *corev1.ConfigMap) {
			settings.Data = map[string]string{"index.html.template": "About us", "about.html.template": "Welcome"}
		}, differs: true},
		"a character moves from a value to its key": {change: func(settings *corev1.ConfigMap) {
			settings.Data = map[string]string{"index.html.templateW": "elcome", "about.html.template": "About us"}
		}, differs: true},
		"a binary value changes": {change: func(settings *corev1.ConfigMap) { settings.BinaryData["logo.png"][0] = 0 }, differs: true},
		"a text value becomes binary": {change: func(settings *corev1.ConfigMap) {
			delete(settings.Data, "about.html.template")
			settings.BinaryData["about.html.template"] = []byte("About us")
		}, differs: true},
		"a binary value becomes its text in base64": {change: func(settings *corev1.ConfigMap) {
			settings.Data["logo.png"], settings.BinaryData = "iVBORw==", nil
		}, differs: true},
		"everything is removed": {change: func(settings *corev1.ConfigMap) { settings.Data, settings.BinaryData = nil, nil }, differs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			settings := storedSettings()
			test.change(settings)
			differs := digestOf(settings) != digestOf(storedSettings())
			g.Expect(differs).To(Equal(test.differs), "see digestOf in settings.go")
		})
	}
}

func TestDigestIsShort(t *testing.T) {
	g := NewWithT(t)
	large := storedSettings()
	large.Data["large"] = strings.Repeat("x", 500_000)
	g.Expect(digestOf(large)).To(MatchRegexp("^[0-9a-f]{32}$"))
}

func TestKeepDigest(t *testing.T) {
	g := NewWithT(t)
	kept, err := keepDigest(storedSettings())
	g.Expect(err).NotTo(HaveOccurred())
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "page-settings", UID: "uid-of-settings", ResourceVersion: "20"},
		Data:       map[string]string{digestKey: digestOf(storedSettings())},
	}
	g.Expect(kept).NotTo(BeNil(), "see keepDigest in settings.go")
	g.Expect(kept).To(HaveField("ObjectMeta", Equal(want.ObjectMeta)), "keepDigest in settings.go must drop labels, annotations and managed fields, and keep the rest")
	g.Expect(kept).To(Equal(want), "the cache must contain the digest in place of the content, see keepDigest in settings.go")
	g.Expect(digestOf(want)).To(Equal(digestOf(storedSettings())), "the digest of a cached ConfigMap must be that of the whole one, see digestOf in settings.go")

	again, err := keepDigest(want.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(want), "the informer may call the transform again with its result")
}

func TestKeepDigestLeavesOthersAlone(t *testing.T) {
	g := NewWithT(t)
	secret := &corev1.Secret{Data: map[string][]byte{"key": []byte("value")}}
	g.Expect(keepDigest(secret.DeepCopy())).To(Equal(secret))
}

// If a ConfigMap could have digestKey, its author could hide changes from the controller.
func TestDigestKeyCannotBeForged(t *testing.T) {
	g := NewWithT(t)
	g.Expect(validation.IsConfigMapKey(digestKey)).NotTo(BeEmpty(), "the API server must refuse digestKey as a ConfigMap's key")

	quoting := storedSettings()
	quoting.Data = maps.Clone(quoting.Data)
	quoting.Data["digest"] = digestOf(storedSettings())
	g.Expect(digestOf(quoting)).NotTo(Equal(digestOf(storedSettings())))
}
