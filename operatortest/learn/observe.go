package learn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/process"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// quiet is how long the operator must write nothing before it counts as at rest.
const quiet = 3 * time.Second

// run is the result of one run of the operator.
type run struct {
	resource *unstructured.Unstructured
	children []*unstructured.Unstructured
	// gone lists the kinds and names of objects that the operator created and that have been, or are being, deleted.
	gone  []string
	state state.Snapshot
	// confined means that the operator listed or watched its custom resources in all namespaces, and that the kit showed
	// it only those in the run's namespace.
	confined bool
	// writes holds the writes that took effect, without Events and Leases.
	writes []traffic.Request
	// drift holds proposals for the children, in the children's order.
	drift [][]proposal
}

// observe runs the operator on the sample in a namespace of its own. output is the folder for what the operator prints.
func observe(ctx context.Context, runner *trial.Runner, name, output string) (run, error) {
	var made run
	var failed error
	err := runner.Try(ctx, name, func(ctx context.Context, t *trial.Trial) error {
		t.Operator.Children = nil // forget the children that the previous run found
		made, failed = observeIn(ctx, t, output)
		return failed
	})
	if failed != nil {
		return made, failed // unlike err, it doesn't contain the log of all requests
	}
	return made, err
}

func observeIn(ctx context.Context, t *trial.Trial, output string) (run, error) {
	operator := t.Start(operatortest.RunOptions{})
	made := run{resource: t.Resource(nil)}
	if err := t.Create(ctx, made.resource); err != nil {
		return made, err
	}
	if err := waitAtRest(ctx, t, operator, output); err != nil {
		return made, err
	}
	isResource, err := t.RequestsFor(made.resource.GroupVersionKind())
	if err != nil {
		return made, err
	}
	made.confined = slices.ContainsFunc(operator.Tap.Requests(), func(request traffic.Request) bool { return request.Confined && isResource(request) })
	for _, request := range operator.Writes() {
		if !request.IsEvent() && request.Status < http.StatusBadRequest && !request.Unchanged {
			made.writes = append(made.writes, request)
		}
	}
	if err := t.Get(ctx, made.resource); err != nil {
		return made, err
	}
	if made.children, made.gone, err = findChildren(ctx, t); err != nil {
		return made, err
	}
	for _, child := range made.children {
		found, err := accepted(ctx, t, child)
		if err != nil {
			return made, err
		}
		made.drift = append(made.drift, found)
		t.Operator.Children = append(t.Operator.Children, operatortest.Child{Kind: child.GroupVersionKind()})
	}
	made.state, err = t.State(ctx)
	return made, err
}

// findChildren returns the objects that the operator created and that still exist, and the kinds and names of those
// that are gone. Objects that are being deleted count as gone. The operator's requests show what it created.
func findChildren(ctx context.Context, t *trial.Trial) (children []*unstructured.Unstructured, gone []string, err error) {
	asked, err := t.MadeElse()
	if err != nil {
		return nil, nil, err
	}
	for kind, names := range asked {
		objects, err := t.List(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetDeletionTimestamp() != nil })
		for _, name := range missing(names, objects) {
			gone = append(gone, kind.Kind+" "+name)
		}
		for _, object := range objects {
			isAsked := func(name string) bool { return trial.IsNamed(object.GetName(), name) }
			if slices.ContainsFunc(names, isAsked) {
				children = append(children, object)
			}
		}
	}
	slices.Sort(gone)
	slices.SortFunc(children, func(a, b *unstructured.Unstructured) int { return strings.Compare(key(a), key(b)) })
	return children, gone, nil
}

// missing returns, without duplicates, the names under which more objects were created than still exist.
func missing(created []string, objects []*unstructured.Unstructured) []string {
	left := slices.Clone(created)
	for _, object := range objects {
		i := slices.IndexFunc(left, func(name string) bool { return trial.IsNamed(object.GetName(), name) })
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

func key(object *unstructured.Unstructured) string {
	return schema.GroupKind.String(object.GroupVersionKind().GroupKind()) + "/" + object.GetName()
}

// waitAtRest waits until the operator has written something, and then nothing for a while.
func waitAtRest(ctx context.Context, t *trial.Trial, operator *trial.Instance, output string) error {
	var writes []traffic.Request
	stillness := trial.Stillness{Quiet: quiet}
	err := wait.PollUntilContextTimeout(ctx, testcluster.PollInterval, t.Operator.Timeout, true, func(context.Context) (bool, error) {
		select {
		case <-operator.Done:
			return false, operator.Err
		default:
		}
		writes = operator.Writes()
		return stillness.Still(writes) && len(writes) > 0, nil
	})
	switch {
	case err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return err
	case len(writes) == 0:
		return fmt.Errorf("the operator wrote nothing within %s: check that it watches namespace %s, where the sample is (--namespace={{.Namespace}}), and that the roles of --role allow its requests; %s",
			t.Operator.Timeout, t.Namespace, lastLines(output))
	}
	return fmt.Errorf("the operator did not come to rest within %s: it keeps writing, %d requests so far, the last one %q; %s",
		t.Operator.Timeout, len(writes), strings.TrimSpace(writes[len(writes)-1].String()), lastLines(output))
}

// lastLines returns the last lines of the newest log in a folder, for an error message.
func lastLines(output string) string {
	files, err := filepath.Glob(filepath.Join(output, "*.log"))
	if err != nil || len(files) == 0 {
		return "it printed nothing"
	}
	newest := slices.MaxFunc(files, func(a, b string) int { return modified(a).Compare(modified(b)) })
	return process.LastLinesOf(newest)
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
