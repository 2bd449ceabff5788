package greeting

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// textKey is the ConfigMap's key for the text.
const textKey = "text"

// Text greets a person in a language, or in English if it doesn't know the language.
func Text(name, language string) string {
	hello := "Hello"
	switch language {
	case "de":
		hello = "Hallo"
	case "fr":
		hello = "Bonjour"
	}
	return fmt.Sprintf("%s, %s!", hello, strings.TrimSpace(name))
}

// newConfigMap returns the ConfigMap that a Greeting should have, without its owner reference.
func newConfigMap(greeting *Greeting) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name + "-text"},
		Data:       map[string]string{textKey: Text(greeting.Spec.Name, greeting.Spec.Language)},
	}
}
