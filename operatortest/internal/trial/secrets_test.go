package trial

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest/testcluster"
)

func TestNeedles(t *testing.T) {
	g := NewWithT(t)
	watch := &secretWatch{values: map[string]string{}}
	watch.add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "made"},
		Data: map[string][]byte{
			"password": []byte("a \"long\" one\n"), "pin": []byte("1234567"), "user": []byte("administrator"), "host": []byte("db.example.com"),
			"tls.crt": []byte("-----BEGIN CERTIFICATE-----"),
		},
	})
	watch.give(map[string]any{"spec": map[string]any{"owner": "administrator"}})
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte(`a "long" one`)}}
	inYAML, err := yaml.Marshal(secret)
	g.Expect(err).NotTo(HaveOccurred())

	needles := watch.needles(func(key string) bool { return key == "host" })

	texts := map[string]string{
		"as it is": `it is a "long" one`, "quoted": fmt.Sprintf("%q", `it is a "long" one`), "a whole Secret": fmt.Sprintf("%v", secret.Data),
		"a whole Secret, by its own String": secret.String(), "a whole Secret in YAML": string(inYAML),
	}
	for how, text := range texts {
		isIn := func(needle string) bool { return strings.Contains(text, needle) }
		g.Expect(needles).To(HaveKey(Satisfy(isIn)), how)
	}
	g.Expect(needles).To(HaveEach("password in Secret made"), "values of 7 bytes, values that a user wrote, keys that are left out and certificates must not be searched for")
}

func TestReadableContainsTheEventsAboutClusterScopedResources(t *testing.T) {
	g := NewWithT(t)
	depots := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Depot"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(depots, meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	about := func(depot string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: depot + ".1"},
			InvolvedObject: corev1.ObjectReference{Kind: depots.Kind, Name: depot}, Message: "the password is " + depot,
		}
	}
	ofChild := about("child")
	ofChild.Namespace = "spec-a"
	admin := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(about("depot-spec-a"), about("depot-spec-b"), ofChild).Build()
	sample := objectNamed(depots.GroupVersion().String(), depots.Kind, "depot")
	runner := &Runner{Cluster: &testcluster.Cluster{Admin: admin}, Sample: sample, clusterScoped: map[schema.GroupVersionKind]bool{depots: true}}

	texts, err := runner.newTrial("secrets/a", "spec-a").readable(t.Context())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(HaveKeyWithValue("Event depot-spec-a.1", ContainSubstring("the password is depot-spec-a")))
	g.Expect(texts).To(HaveKey("Event child.1"))
	g.Expect(texts).NotTo(HaveKey("Event depot-spec-b.1"), "an event about another trial's resource must not be searched")
}

func TestHidden(t *testing.T) {
	g := NewWithT(t)
	g.Expect(hidden("first\nit is s3cret now\nlast", "s3cret", "key in Secret made")).To(Equal("it is <key in Secret made> now"))
}
