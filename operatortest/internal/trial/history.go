package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// History counts what has happened to the children in a trial: how many times an object was created under each name,
// and how many times each field returned to an earlier value.
type History map[string]int

// Lived is the History of one trial.
type Lived struct {
	// Trial is the trial's ID. It names no behaviour if the trial is the reference, an undisturbed lifecycle.
	Trial string
	History
}

// Beyond describes what happened more often than in the reference.
func (h History) Beyond(reference History) []string {
	var found []string
	for _, what := range slices.Sorted(maps.Keys(h)) {
		if often := h[what]; often > reference[what] {
			found = append(found, fmt.Sprintf("%s %s, and %s in an undisturbed lifecycle", what, times(often), times(reference[what])))
		}
	}
	return found
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// NoteHistory records what happened to the children from [Trial.Follow] until the deletion of their resource began:
// after that, whether the operator once more repairs what the garbage collector removes depends on timing. Other
// owners' objects don't count.
func (t *Trial) NoteHistory() error {
	history := History{}
	made, lives := map[types.UID]bool{}, map[types.UID]*life{}
	versions := t.versions()
	end := t.endOf(versions)
	for _, version := range versions {
		if version.GroupVersionKind() == t.Sample.GroupVersionKind() || !t.isChild(version.Unstructured) {
			continue
		}
		before, err := isBefore(version.Unstructured, end)
		if err != nil {
			return err
		}
		if !before {
			continue
		}
		uid, name := version.GetUID(), t.plainName(version.Unstructured)
		if !made[uid] {
			made[uid], lives[uid] = true, &life{now: map[string]string{}, earlier: map[string]map[string]bool{}}
			history[name+" was created"]++
		}
		fields, err := fieldsOf(version.Unstructured)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for field, value := range lives[uid].returned(fields) {
			history[fmt.Sprintf("%s of %s went back to %s", field, name, t.plain(value))]++
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.histories = append(t.histories, Lived{Trial: t.id, History: history})
	return nil
}

// Histories returns the histories noted by all trials so far.
func (runner *Runner) Histories() []Lived {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return slices.Clone(runner.histories)
}

// endOf returns the version with which the resource's deletion began, or nil if it has not begun.
func (t *Trial) endOf(versions []version) *unstructured.Unstructured {
	for _, version := range versions {
		if version.GroupVersionKind() == t.Sample.GroupVersionKind() && (version.gone || version.GetDeletionTimestamp() != nil) {
			return version.Unstructured
		}
	}
	return nil
}

// isBefore reports whether a version was written before end; if end is nil, every version was. All kinds share etcd's
// revisions.
func isBefore(version, end *unstructured.Unstructured) (bool, error) {
	if end == nil {
		return true, nil
	}
	order, err := resourceversion.CompareResourceVersion(version.GetResourceVersion(), end.GetResourceVersion())
	return order < 0, err
}

// isChild reports whether an object is the operator's work. An object of a declared kind may be another controller's,
// such as a ReplicaSet's pod.
func (t *Trial) isChild(object metav1.Object) bool {
	if t.isForeign(object) || object.GetName() == clusterCertificate {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(object)
	return owner == nil || t.isResource(*owner)
}

// isResource reports whether an owner is of the sample's kind, in any version of the API: the version that an operator
// writes into owner references may differ from the one that users write into their resources.
func (t *Trial) isResource(owner metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == t.Sample.GroupVersionKind().GroupKind()
}

// plainName returns an object's kind and name, without the parts that differ from trial to trial.
func (t *Trial) plainName(object *unstructured.Unstructured) string {
	name, declared := t.generatedName(object)
	if declared {
		return object.GetKind() + " " + name
	}
	if name = object.GetName(); object.GetGenerateName() != "" {
		name = object.GetGenerateName() + "*"
	}
	return object.GetKind() + " " + t.plain(name)
}

func (t *Trial) plain(text string) string {
	return strings.ReplaceAll(text, t.Namespace, "<namespace>")
}

// life holds the current and earlier values of one object's fields.
type life struct {
	now     map[string]string
	earlier map[string]map[string]bool
}

// absent is the value of a field that does not exist.
const absent = "nothing"

// returned takes the object's next version. It returns the fields that have an earlier value again, with that value.
func (l *life) returned(fields map[string]string) map[string]string {
	found := map[string]string{}
	for field := range l.now {
		if _, there := fields[field]; !there {
			fields[field] = absent
		}
	}
	for field, value := range fields {
		before, known := l.now[field]
		l.now[field] = value
		if !known || value == before {
			continue
		}
		if l.earlier[field] == nil {
			l.earlier[field] = map[string]bool{}
		}
		l.earlier[field][before] = true
		if l.earlier[field][value] {
			found[field] = value
		}
	}
	return found
}

// fieldsOf returns the values of an object's fields as JSON, keyed by path. It leaves out the status, and all metadata
// except labels and annotations.
func fieldsOf(object *unstructured.Unstructured) (map[string]string, error) {
	written := maps.Clone(object.Object)
	delete(written, "status")
	written["metadata"] = map[string]any{"labels": metadataOf(object, "labels"), "annotations": metadataOf(object, "annotations")}
	fields := map[string]string{}
	return fields, addFields(fields, "", written)
}

func metadataOf(object *unstructured.Unstructured, field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
	return value
}

// addFields adds the fields in a value. A list counts as one value, because inserting an item moves those after it.
func addFields(fields map[string]string, path string, value any) error {
	if nested, isMap := value.(map[string]any); isMap {
		for key, inner := range nested {
			if err := addFields(fields, strings.TrimPrefix(path+"."+key, "."), inner); err != nil {
				return err
			}
		}
		return nil
	}
	content, err := json.Marshal(value)
	fields[path] = string(content)
	return err
}
