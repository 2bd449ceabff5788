package trial

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// recordedCluster is a cluster whose Admin is replaced with a client that records writes.
type recordedCluster struct {
	*testcluster.Cluster
	Admin client.Client
}

// recorder is a client that notes each create, update, patch and delete, except dry runs, with the time when it was
// sent.
type recorder struct {
	client.Client
	note func(at time.Time, verb string, object client.Object, detail string, err error)
}

// Create implements client.Writer.
func (r recorder) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	at := time.Now()
	err := r.Client.Create(ctx, object, options...)
	if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) == 0 {
		r.note(at, "create", object, "", err)
	}
	return err
}

// Update implements client.Writer.
func (r recorder) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	at := time.Now()
	err := r.Client.Update(ctx, object, options...)
	r.note(at, "update", object, "", err)
	return err
}

// Patch implements client.Writer.
func (r recorder) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	content, _ := patch.Data(object) // Patch returns the same error
	at := time.Now()
	err := r.Client.Patch(ctx, object, patch, options...)
	if len((&client.PatchOptions{}).ApplyOptions(options).DryRun) == 0 {
		r.note(at, "patch", object, string(content), err)
	}
	return err
}

// Delete implements client.Writer.
func (r recorder) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	at := time.Now()
	err := r.Client.Delete(ctx, object, options...)
	r.note(at, "delete", object, "", err)
	return err
}

// note adds a write of the kit to the timeline. Unless the write failed or was a deletion, note also shows the Taps the
// resulting object.
func (t *Trial) note(at time.Time, verb string, object client.Object, detail string, err error) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if known, kindErr := t.Cluster.Admin.GroupVersionKindFor(object); kindErr == nil { // a typed object may lack its kind
		kind = known.Kind
	}
	if err != nil {
		detail = err.Error()
	}
	t.actsMu.Lock()
	t.acts = append(t.acts, report.Entry{
		Seconds: at.Sub(t.began).Seconds(), What: verb + " " + kind, Object: target(object.GetNamespace(), object.GetName()), Reply: detail,
	})
	instances := t.instances
	t.actsMu.Unlock()
	if err != nil || verb == "delete" {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return // no reply to an apply is compared with it then
	}
	for _, instance := range instances {
		instance.Tap.NoteOther(&unstructured.Unstructured{Object: content})
	}
}

func target(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// timeline merges the kit's own actions, the operators' requests, and the watch events that reached the operators.
func (t *Trial) timeline() []report.Entry {
	t.actsMu.Lock()
	entries := slices.Clone(t.acts)
	t.actsMu.Unlock()
	for i, instance := range t.instances {
		since := instance.Tap.Began().Sub(t.began)
		act := func(at time.Duration, what string) {
			entries = append(entries, report.Entry{Seconds: (since + at).Seconds(), What: fmt.Sprintf("%s operator %d", what, i+1)})
		}
		act(0, "start")
		if instance.terminated != 0 {
			act(instance.terminated, "stop")
		}
		if at, killed := instance.Tap.KilledAt(); killed {
			act(at, "kill")
		}
		entries = append(entries, entriesOf(i+1, since, instance.Tap.Requests(), instance.Tap.Events())...)
	}
	slices.SortStableFunc(entries, func(a, b report.Entry) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return entries
}

// entriesOf describes an operator's requests, and the watch events that reached it. Their times count from the creation of
// the operator's Tap; since is how old the trial was then.
func entriesOf(operator int, since time.Duration, requests []traffic.Request, events []traffic.Event) []report.Entry {
	var entries []report.Entry
	for _, request := range requests {
		entries = append(entries, report.Entry{
			Operator: operator, Seconds: (since + request.At).Seconds(), What: request.Kind(), Object: request.Target(), Reply: request.Result(),
			Injected: request.Note != "" || request.Status >= http.StatusBadRequest,
		})
	}
	for _, event := range events {
		entries = append(entries, report.Entry{
			Operator: operator, Seconds: (since + event.At).Seconds(),
			What:   string(event.Type) + " " + schema.GroupResource{Group: event.Group, Resource: event.Resource}.String(),
			Object: target(event.Namespace, event.Name), Reply: "resource version " + event.Version,
		})
	}
	return entries
}
