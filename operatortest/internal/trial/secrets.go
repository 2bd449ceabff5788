package trial

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// minSecret is the minimum number of bytes that a value must have to be searched for: shorter ones could appear by
// chance.
const minSecret = 8

// secretKind is the kind of Kubernetes' own Secrets.
var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// notSecret lists keys, in well-known types of Secrets, whose values anyone may read.
var notSecret = []string{"ca.crt", "tls.crt", corev1.ServiceAccountNamespaceKey}

// lastApplied is the annotation in which kubectl apply stores a whole object, inside that object.
const lastApplied = corev1.LastAppliedConfigAnnotation

// secretWatch collects the values of a namespace's Secrets, even of those that are deleted later.
type secretWatch struct {
	stop context.CancelFunc

	mu sync.Mutex
	// values maps each value to a description of its place: a key, and the name of a Secret.
	values map[string]string
	// given is what users wrote to objects, as JSON. It is not secret.
	given []string
}

// watchSecrets watches the Secrets of a namespace until stop is called.
func (t *Trial) watchSecrets(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(t.Cluster.Config)
	if err != nil {
		return fmt.Errorf("make a client to watch Secrets with: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.secrets = &secretWatch{stop: stop, values: map[string]string{}}
	events, err := clients.CoreV1().Secrets(t.Namespace).Watch(running, metav1.ListOptions{TimeoutSeconds: new(watchTimeout)})
	if err != nil {
		stop()
		return fmt.Errorf("watch the Secrets of %s: %w", t.Namespace, err)
	}
	go t.secrets.follow(events)
	return nil
}

// follow records the Secrets that a watch shows, until the watch ends. Even if it ends early, the list at the end of
// the trial still finds the Secrets that exist then.
func (w *secretWatch) follow(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		if secret, ok := event.Object.(*corev1.Secret); ok {
			w.add(secret)
		}
	}
}

func (w *secretWatch) add(secret *corev1.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, value := range secret.Data {
		value := string(bytes.TrimSpace(value))
		if len(value) >= minSecret && !slices.Contains(notSecret, key) {
			w.values[value] = key + " in Secret " + secret.Name
		}
	}
}

// give records what a user has put into an object.
func (w *secretWatch) give(content any) {
	text, err := json.Marshal(content)
	if err != nil {
		return // then the API server doesn't get it either
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = append(w.given, string(text))
}

// needles returns the forms in which values may appear in a string, each with a description. It skips values whose keys
// are left out, and values that a user wrote into an object.
func (w *secretWatch) needles(leftOut func(key string) bool) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	needles := map[string]string{}
	for value, words := range w.values {
		key, _, _ := strings.Cut(words, " in Secret ")
		isGiven := func(given string) bool { return strings.Contains(given, value) }
		if leftOut(key) || slices.ContainsFunc(w.given, isGiven) {
			continue
		}
		for _, form := range formsOf(value) {
			needles[form] = words
		}
	}
	return needles
}

// formsOf returns a value unchanged, as quoted by Go and in JSON, in base64 as in a Secret's JSON, and as a list of
// numbers: with spaces, as Go prints a byte slice (for instance when a whole Secret is logged), and with commas, as in
// a JSON array.
func formsOf(value string) []string {
	quoted, _ := json.Marshal(value) // a string can always be encoded
	decimals := strings.Trim(fmt.Sprintf("%d", []byte(value)), "[]")
	return []string{
		value, strings.Trim(strconv.Quote(value), `"`), strings.Trim(string(quoted), `"`), base64.StdEncoding.EncodeToString([]byte(value)),
		decimals, strings.ReplaceAll(decimals, " ", ","),
	}
}

// hidden returns the part of a line around a needle, with a placeholder for the needle.
func hidden(text, needle, words string) string {
	before, after, _ := strings.Cut(text, needle)
	before, after = before[strings.LastIndex(before, "\n")+1:], strings.SplitN(after, "\n", 2)[0]
	const shown = 120
	return before[max(0, len(before)-shown):] + "<" + words + ">" + after[:min(len(after), shown)]
}

// disclosures searches for values of Secrets in places where people can read them without permission to read the
// Secrets. It notes each one that it finds, for [Runner.Disclosed].
func (t *Trial) disclosures(ctx context.Context) error {
	secrets := &corev1.SecretList{}
	if err := t.Cluster.Admin.List(ctx, secrets, client.InNamespace(t.Namespace)); err != nil {
		return fmt.Errorf("list the Secrets of %s: %w", t.Namespace, err)
	}
	for i := range secrets.Items {
		t.secrets.add(&secrets.Items[i])
	}
	needles := t.secrets.needles(func(key string) bool { return t.LeftOut("secrets/" + key) })
	if len(needles) == 0 {
		return nil
	}
	t.noteSearch()
	texts, err := t.readable(ctx)
	if err != nil {
		return err
	}
	for _, where := range slices.Sorted(maps.Keys(texts)) {
		for needle, words := range needles {
			if strings.Contains(texts[where], needle) {
				t.disclose(where, words, hidden(texts[where], needle, words))
			}
		}
	}
	return nil
}

// readable returns the strings that must contain no value of a Secret: the operators' logs, the Events in the trial's
// namespace and those that clusterEvents returns, the resources, all objects of the children's kinds, and those of
// every other kind that the operators created objects of. It leaves out the objects in Trial.Foreign, such as those
// that Prepare created. For a Secret, only the labels and annotations count.
func (t *Trial) readable(ctx context.Context) (map[string]string, error) {
	texts := map[string]string{}
	for i, operator := range t.instances {
		texts[fmt.Sprintf("the log of operator %d", i+1)] = operator.log.String()
	}
	kinds := append(t.ChildKinds(), t.Sample.GroupVersionKind(), corev1.SchemeGroupVersion.WithKind("Event"))
	made, err := t.MadeElse()
	if err != nil {
		return nil, err
	}
	for kind := range made {
		kinds = append(kinds, kind)
	}
	objects, err := t.clusterEvents(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		listed, err := t.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		objects = append(objects, listed...)
	}
	for _, object := range objects {
		if !t.Foreign[object.GetUID()] {
			texts[object.GetKind()+" "+object.GetName()] = leavesOf(published(object))
		}
	}
	return texts, nil
}

// clusterEvents returns the Events about the trial's cluster-scoped objects, or none if its resources are namespaced.
func (t *Trial) clusterEvents(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if t.EventsNamespace() == t.Namespace {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	if err := t.Cluster.Admin.List(ctx, list, client.InNamespace(t.EventsNamespace())); err != nil {
		return nil, fmt.Errorf("list the Events about cluster-scoped objects: %w", err)
	}
	var events []*unstructured.Unstructured
	for i := range list.Items {
		// All trials write to this namespace. The name of a cluster-scoped object contains its trial's namespace.
		about, _, _ := unstructured.NestedString(list.Items[i].Object, "involvedObject", "name")
		if strings.Contains(about, t.Namespace) {
			events = append(events, &list.Items[i])
		}
	}
	return events, nil
}

// published returns the part of an object that must contain no value of a Secret. If the object is a Secret itself, that
// part is its labels, and its annotations except lastApplied.
func published(object *unstructured.Unstructured) any {
	if object.GroupVersionKind() != secretKind {
		return object.Object
	}
	annotations := object.GetAnnotations()
	delete(annotations, lastApplied)
	return map[string]any{"labels": fmt.Sprint(object.GetLabels()), "annotations": fmt.Sprint(annotations)}
}

// leavesOf returns all keys and strings in an object, one per line. It doesn't encode them as JSON: that would quote a
// second time what is already quoted within a string, so that no needle would match it.
func leavesOf(content any) string {
	switch content := content.(type) {
	case string:
		return content + "\n"
	case map[string]any:
		text := &strings.Builder{}
		for _, key := range slices.Sorted(maps.Keys(content)) {
			text.WriteString(key + "\n" + leavesOf(content[key]))
		}
		return text.String()
	case []any:
		text := &strings.Builder{}
		for _, item := range content {
			text.WriteString(leavesOf(item))
		}
		return text.String()
	}
	return ""
}

// noteSearch notes that a trial has values to search for, and whether it has an operator's log to search.
func (t *Trial) noteSearch() {
	has := slices.ContainsFunc(t.instances, func(operator *Instance) bool { return operator.log.exists() })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.searched, t.heard = true, t.heard || has
}

// SawNoLog reports whether trials have searched for values of Secrets, but none of them has seen an operator's log.
func (runner *Runner) SawNoLog() bool {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return runner.searched && !runner.heard
}

// disclose records a place in which a value was found.
func (t *Trial) disclose(where, words, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := fmt.Sprintf("%s, in %s of the trial %s: %s", words, where, t.id, strings.TrimSpace(line))
	if !slices.Contains(t.disclosed, found) {
		t.disclosed = append(t.disclosed, found)
	}
}

// Disclosed describes the values of Secrets that trials have found so far where they don't belong.
func (runner *Runner) Disclosed() []string {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return slices.Sorted(slices.Values(runner.disclosed))
}
