package trial

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
)

// Key returns the key of an object in a snapshot of the trial.
func (t *Trial) Key(object *unstructured.Unstructured) string {
	if name, generated := t.generatedName(object); generated {
		return object.GetKind() + "/" + name
	}
	return state.KeyOf(object)
}

// generatedName describes a child with a generated name by its generateName, its owner and the declared labels, because
// the name itself differs from trial to trial.
func (t *Trial) generatedName(object *unstructured.Unstructured) (name string, generated bool) {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != t.Sample.GetKind() {
		return "", false
	}
	for _, declared := range t.Operator.Children {
		if !declared.Generated || declared.Kind != object.GroupVersionKind() || !hasLabels(object, declared) {
			continue
		}
		if prefix := object.GetGenerateName(); strings.HasPrefix(object.GetName(), prefix) {
			name = prefix
		}
		name += "* of " + owner.Name
		if len(declared.Labels) > 0 {
			name += " with " + labels.Set(declared.Labels).String()
		}
		return t.plain(name), true
	}
	return "", false
}

func hasLabels(object *unstructured.Unstructured, declared operatortest.Child) bool {
	return labels.SelectorFromSet(declared.Labels).Matches(labels.Set(object.GetLabels()))
}
