package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// Trial is one experiment in a namespace of its own.
type Trial struct {
	*Runner
	// Cluster is the Runner's, with a client that records what the trial writes.
	Cluster recordedCluster
	// began is when the trial began. acts lists the writes that Cluster.Admin has recorded. actsMu guards acts and changes
	// to instances.
	began     time.Time
	actsMu    sync.Mutex
	acts      []report.Entry
	Namespace string
	// user is the name of the user whose permissions the operators have.
	user string
	// id identifies the trial, as in its Record.
	id string
	// Foreign holds the UIDs of objects that the kit knows to be the work of others, not of the operator.
	Foreign map[types.UID]bool
	// applied is what others have added to children, keyed by the children's UIDs.
	applied map[types.UID]appliedParts
	// prepared names the unmeetable specs for which Unmeetable.Prepare has been called.
	prepared map[string]bool
	// retained contains the retained children that some resource calls for, or called for earlier. kept lists those
	// that existed when their resources were deleted.
	retained map[retained]bool
	kept     []kept
	// labelled lists the cluster-scoped resources whose objects the operators see only if trialLabel assigns them to the
	// trial.
	labelled []schema.GroupResource
	// clusterWide lists the cluster-scoped objects that Operator.Prepare or an Unmeetable's Prepare created.
	clusterWide []client.Object
	instances   []*Instance
	secrets     *secretWatch
	// beside is the Trial for a second namespace. It is nil if there is no such namespace.
	beside *Trial
	// first is the Trial for the first namespace. It is set only in the Trial for a second one.
	first *Trial
	// last is the condition of the last ConvergeTo. It is nil if the trial has changed something since then.
	last func(context.Context) error
	// Remark is a note for the trial's Record, for example about what the trial could not try. NotTried is the reason why
	// a trial that doesn't fail proves nothing, for example because the operator made no request to disturb.
	Remark, NotTried string
	// Void means that the trial proves nothing because something disturbed it, and will be repeated. It isn't recorded.
	Void bool
	// BeforeLook checks the operators before each check of the cluster. By default, an operator that has exited on its
	// own is an error; some trials start another one instead.
	BeforeLook func() error
}

// Try runs an experiment and cleans up after it. If the experiment fails, the error also contains the last requests and
// log lines of each operator. If another trial is selected, Try does nothing, unless this is a reference trial or
// runs inside another trial.
func (runner *Runner) Try(ctx context.Context, name string, experiment func(context.Context, *Trial) error) (err error) {
	if runner.skips(ctx, name) {
		return nil
	}
	ctx, done, err := runner.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if runner.OnTrial != nil {
		runner.OnTrial(behaviourOf(ctx), false)
		defer runner.OnTrial(behaviourOf(ctx), true)
	}
	began := time.Now()
	namespace, err := runner.Cluster.CreateNamespace(ctx)
	if err != nil {
		return err
	}
	tried := runner.newTrial(id(behaviourOf(ctx), name), namespace.Name)
	tried.began = began
	defer func() {
		// A failure proves nothing if the context is done: another trial has failed, or no one is waiting any more.
		if !tried.Void && (err == nil || ctx.Err() == nil) {
			runner.record(ctx, name, tried, err)
		}
		if err != nil {
			err = &failure{id: id(behaviourOf(ctx), name), cause: err, logs: tried.Logs(), said: tried.lastLines()}
		}
		err = errors.Join(err, tried.clear(namespace))
	}()
	if err := tried.grantRoles(ctx); err != nil {
		return err
	}
	if err := tried.watchSecrets(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tried.disclosures(ctx)) }()
	if err := tried.prepare(ctx); err != nil {
		return err
	}
	if err := tried.markForeign(ctx); err != nil {
		return err
	}
	if err := experiment(ctx, tried); err != nil {
		// An operator that writes outside its trial disturbs other trials, so report that first, and a panic next.
		return errors.Join(tried.confined(), tried.panicked(), err)
	}
	err = errors.Join(tried.confined(), tried.undeclared(ctx), tried.stays(ctx), tried.checkBeside(ctx))
	return errors.Join(tried.panicked(), err)
}

// newTrial returns a trial that begins now.
func (runner *Runner) newTrial(id, namespace string) *Trial {
	made := &Trial{
		Runner: runner, began: time.Now(), Namespace: namespace, id: id, user: runner.user,
		Foreign: map[types.UID]bool{}, prepared: map[string]bool{}, applied: map[types.UID]appliedParts{}, retained: map[retained]bool{}, labelled: slices.Clone(runner.labelled),
	}
	made.Cluster = recordedCluster{Cluster: runner.Cluster, Admin: recorder{runner.Cluster.Admin, made.note}}
	made.BeforeLook = made.Ended
	return made
}

// markForeign marks the trial's objects of the children's kinds as someone else's, unless they are children of a
// resource of the sample's kind.
func (t *Trial) markForeign(ctx context.Context) error {
	resources, err := t.List(ctx, t.Sample.GroupVersionKind())
	if err != nil {
		return err
	}
	for _, kind := range t.ChildKinds() {
		objects, err := t.List(ctx, kind)
		if err != nil {
			return err
		}
		for _, object := range objects {
			ours := func(resource *unstructured.Unstructured) bool { return t.IsChild(object, resource) }
			if !slices.ContainsFunc(resources, ours) {
				t.Foreign[object.GetUID()] = true
			}
		}
	}
	return nil
}

// clear kills the operators, deletes the cluster-scoped objects that a Prepare function created and, on an existing
// cluster, the trial's namespaces and other cluster-scoped objects.
func (t *Trial) clear(namespace *corev1.Namespace) error {
	var errs []error
	if t.secrets != nil {
		t.secrets.stop()
	}
	for _, instance := range t.instances {
		errs = append(errs, instance.Kill())
		handled.remove(instance)
		instance.log.close()
	}
	return errors.Join(append(errs, t.removeClusterWide(), t.empty(namespace), t.clearBeside())...)
}

// empty deletes the namespace and the trial's cluster-scoped objects on an existing cluster. The trial's result is known
// by then, so empty removes the finalizers of resources and children, which could block the deletion. Any other cluster
// is removed as a whole: emptying a namespace would cost the API server more than a trial does.
func (t *Trial) empty(namespace *corev1.Namespace) error {
	if !t.Cluster.Existing {
		return nil
	}
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), testcluster.NamespaceTimeout)
	defer cancel()
	// The operator may also put finalizers on objects of a child's kind that it uses but didn't create, such as a Secret.
	for _, kind := range append(t.ChildKinds(), t.Sample.GroupVersionKind()) {
		objects, err := t.List(ctx, kind)
		errs = append(errs, err)
		for _, object := range objects {
			if len(object.GetFinalizers()) > 0 {
				none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				errs = append(errs, client.IgnoreNotFound(t.Cluster.Admin.Patch(ctx, object, none)))
			}
		}
	}
	errs = append(errs, t.removeClusterScoped(ctx), client.IgnoreNotFound(t.Cluster.Admin.Delete(ctx, namespace)))
	return errors.Join(errs...)
}

// Establish creates a resource, waits until it has converged and the operator is at rest, and returns the state of the
// trial's namespace.
func (t *Trial) Establish(ctx context.Context, operator *Instance, resource *unstructured.Unstructured) (state.Snapshot, error) {
	if err := t.Create(ctx, resource); err != nil {
		return nil, err
	}
	if err := t.Converge(ctx, resource); err != nil {
		return nil, err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return nil, err
	}
	return t.State(ctx)
}

// Logs returns the requests of every operator in the trial.
func (t *Trial) Logs() [][]traffic.Request {
	var logs [][]traffic.Request
	for _, instance := range t.instances {
		logs = append(logs, instance.Tap.Requests())
	}
	return logs
}

func (t *Trial) lastLines() []string {
	var said []string
	for _, instance := range t.instances {
		said = append(said, instance.log.lastLines())
	}
	return said
}

// Ended returns an error if an operator of the trial, or the one that serves webhooks for all trials, has exited on
// its own.
func (t *Trial) Ended() error {
	if t.webhooks != nil && t.webhooks != t {
		if err := t.webhooks.Ended(); err != nil {
			return fmt.Errorf("the operator that serves webhooks for the trials: %w", err)
		}
	}
	for i, instance := range t.instances {
		if instance.Exited() {
			return errors.Join(fmt.Errorf("operator %d exited on its own", i+1), instance.Err)
		}
	}
	return nil
}
