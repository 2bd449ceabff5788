package trial

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
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

func TestHidden(t *testing.T) {
	g := NewWithT(t)
	g.Expect(hidden("first\nit is s3cret now\nlast", "s3cret", "key in Secret made")).To(Equal("it is <key in Secret made> now"))
}
