// Package trial runs experiments on an operator: each in a namespace of its own, to which the operator is confined,
// with every request of the operator recorded. Each behaviour in package behaviours, except "schema", consists of
// trials.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/testcluster"
)

// defaultTimeout is the default of Operator.Timeout, which bounds each wait for an operator. A successful wait usually
// takes far less.
const defaultTimeout = time.Minute

// Runner runs all trials of one operator on one cluster.
type Runner struct {
	Operator operatortest.Operator
	Cluster  *testcluster.Cluster
	Sample   *unstructured.Unstructured
	// user has the permissions of the operator's ClusterRoles, and those of its Roles where a trial grants them. If the
	// operator declares no roles, user has all permissions.
	user string
	// clusterScoped says which of the operator's kinds have no namespace. labelled contains the group and resource of the
	// sample's kind if that is one of them.
	clusterScoped map[schema.GroupVersionKind]bool
	labelled      []schema.GroupResource

	roles []*rbacv1.Role
	Rules []rule

	mu sync.Mutex
	// runs holds a channel for each operator that a trial started; it is closed when the operator's Run has returned.
	runs  []<-chan struct{}
	store *store
	// letPanicsPass ends the Runner's handling of panics.
	letPanicsPass func()
	// records holds the trials that have ended.
	records []Record
	// disclosed describes the values of Secrets that trials have found where they don't belong.
	disclosed []string
	// searched means that a trial had values of Secrets to search for. heard means that such a trial had an operator's log.
	searched, heard bool
	// histories holds the histories that trials have noted.
	histories []Lived
	// webhooks is the trial whose only operator serves the cluster's webhooks. It is nil if the operator serves none.
	webhooks *Trial
	// slots bounds how many trials run in parallel, not counting reference trials.
	slots *semaphore.Weighted
	// prepared lists the names of the objects that Operator.Prepare created in one of the trials.
	prepared []string
	// ends holds the final states of fresh resources, keyed by their specs in JSON.
	ends map[string]*end

	// specsOnce guards the result of reading the definition of the sample's kind, and drafts, the namespace in which
	// specs are tried without being stored.
	specsOnce  sync.Once
	knownSpecs *specgen.Specs
	specsErr   error
	drafts     string
	// lives contains the experiments of Once, keyed by name.
	lives sync.Map
	// OnlyTrial is the ID of the one trial to run. If it is empty, all trials run.
	OnlyTrial string
	// OnTrial is called when a trial begins, and when it has ended. The behaviour is empty for trials whose results other
	// trials use. Calls may be concurrent. OnTrial may be nil.
	OnTrial func(behaviour string, ended bool)
	// ShrinkTime bounds each search for a shorter sequence of specs. If it is zero, the bound is 30 seconds.
	ShrinkTime time.Duration
}

type end struct {
	once  sync.Once
	state state.Snapshot
	err   error
	// cutShort means that the caller that tried the spec was cancelled or ran out of time, so err says nothing about the
	// spec.
	cutShort bool
}

// NewRunner creates a user for the operator, and watches the operator's resources and children until Close is called.
// If the operator serves webhooks, NewRunner also starts it, to serve those of the cluster.
func NewRunner(ctx context.Context, operator operatortest.Operator, cluster *testcluster.Cluster) (*Runner, error) {
	if operator.Timeout == 0 {
		var err error
		if operator.Timeout, err = timeoutFromEnvironment(); err != nil {
			return nil, err
		}
	}
	if operator.Condition == "" {
		operator.Condition = "Ready"
	}
	if operator.Parallel == 0 {
		var err error
		if operator.Parallel, err = parallelFromEnvironment(); err != nil {
			return nil, err
		}
	}
	if operator.Parallel < 0 {
		return nil, fmt.Errorf("operator.Parallel is %d: give a positive number of trials", operator.Parallel)
	}
	made := &Runner{Operator: operator, Cluster: cluster, ends: map[string]*end{}, slots: semaphore.NewWeighted(int64(operator.Parallel))}
	if operator.Run == nil || operator.Sample == "" {
		return nil, errors.New("the operator's Run and Sample are required to try its behaviours")
	}
	for _, child := range operator.Children {
		if err := CheckChild(child); err != nil {
			return nil, fmt.Errorf("operator.Children, %s: %w", child.Kind.Kind, err)
		}
	}
	objects, err := manifest.Read(operator.Sample)
	if err != nil {
		return nil, err
	}
	made.Sample = objects[0]
	made.user = "operator-" + utilrand.String(8)
	if len(operator.Roles) == 0 {
		if err := made.grantAll(ctx); err != nil {
			return nil, err
		}
	}
	for _, file := range operator.Roles {
		if err := made.grant(ctx, file); err != nil {
			return nil, err
		}
	}
	kinds := append(made.ChildKinds(), made.Sample.GroupVersionKind())
	if err := made.findScopes(cluster.Admin.RESTMapper(), kinds); err != nil {
		return nil, err
	}
	if made.store, err = openStore(ctx, cluster, kinds); err != nil {
		return nil, err
	}
	made.letPanicsPass = handled.catchPanics()
	if operator.ServesWebhooks {
		if err := made.serveWebhooks(ctx); err != nil {
			made.Close()
			return nil, err
		}
	}
	return made, nil
}

// LeftOut reports whether a behaviour, or a part of one, is left out with a reason.
func (runner *Runner) LeftOut(name string) bool { return runner.Operator.LeftOut[name] != "" }

// Close ends the Runner's watches, its operator for webhooks, and its handling of panics.
func (runner *Runner) Close() {
	if runner.webhooks != nil {
		runner.webhooks.stopServing()
	}
	runner.store.close()
	runner.letPanicsPass()
}

func (runner *Runner) noteRun(ended <-chan struct{}) {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	runner.runs = append(runner.runs, ended)
}

// WaitAllEnded waits until all of the trials' operators have ended, even those that were killed.
func (runner *Runner) WaitAllEnded(ctx context.Context) error {
	runner.mu.Lock()
	runs := slices.Clone(runner.runs)
	runner.mu.Unlock()
	for _, ended := range runs {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("wait until all operators have ended: %w", ctx.Err())
		}
	}
	return nil
}

// ChildKinds returns the kinds of all declared children, without duplicates.
func (runner *Runner) ChildKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, child := range runner.Operator.Children {
		if !slices.Contains(kinds, child.Kind) {
			kinds = append(kinds, child.Kind)
		}
	}
	return kinds
}

// Resource returns a new resource like the sample, but with the given spec unless that is nil. Unless the resource is
// cluster-scoped, its namespace is the placeholder: a child's name may be derived from the namespace.
func (runner *Runner) Resource(spec map[string]any) *unstructured.Unstructured {
	made := runner.Sample.DeepCopy()
	made.SetNamespace(manifest.Placeholder)
	if runner.clusterScoped[made.GroupVersionKind()] {
		made.SetNamespace("")
	}
	if spec != nil {
		made.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return made
}

// SampleSpec returns a copy of the sample's spec.
func (runner *Runner) SampleSpec() map[string]any {
	spec, _, _ := unstructured.NestedMap(runner.Sample.Object, "spec")
	return spec
}

// Fresh returns the final state of a new resource with a spec. It determines each state only once, unless the caller for
// which it does so is cancelled or runs out of time.
func (runner *Runner) Fresh(ctx context.Context, spec map[string]any) (state.Snapshot, error) {
	key, err := json.Marshal(runner.Resource(spec).Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("write a spec as JSON: %w", err)
	}
	runner.mu.Lock()
	known, found := runner.ends[string(key)]
	if !found {
		known = &end{}
		runner.ends[string(key)] = known
	}
	runner.mu.Unlock()
	known.once.Do(func() {
		known.err = runner.Try(reference(ctx), "a new resource with "+string(key), func(ctx context.Context, t *Trial) (err error) {
			known.state, err = t.Establish(ctx, t.Start(operatortest.RunOptions{}), runner.Resource(spec))
			return err
		})
		known.cutShort = known.err != nil && ctx.Err() != nil
	})
	if known.cutShort {
		runner.forget(string(key), known)
		if ctx.Err() == nil {
			return runner.Fresh(ctx, spec) // only the other caller was cut short
		}
	}
	if known.err != nil {
		return nil, fmt.Errorf("determine the final state of a new resource with the same spec: %w", known.err)
	}
	return known.state, nil
}

// forget makes Fresh determine the final state of a spec again.
func (runner *Runner) forget(key string, known *end) {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if runner.ends[key] == known {
		delete(runner.ends, key)
	}
}

// timeoutFromEnvironment reads OPERATORTEST_TIMEOUT; if that isn't set, it returns defaultTimeout. A short timeout
// helps with a half-written operator, for which many waits never succeed.
func timeoutFromEnvironment() (time.Duration, error) {
	given := os.Getenv("OPERATORTEST_TIMEOUT")
	if given == "" {
		return defaultTimeout, nil
	}
	timeout, err := time.ParseDuration(given)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("OPERATORTEST_TIMEOUT=%s: give a duration such as 15s", given)
	}
	return timeout, nil
}

// parallelFromEnvironment reads OPERATORTEST_PARALLEL; if that isn't set, it returns ParallelTrials.
func parallelFromEnvironment() (int, error) {
	given := os.Getenv("OPERATORTEST_PARALLEL")
	if given == "" {
		return ParallelTrials, nil
	}
	parallel, err := strconv.Atoi(given)
	if err != nil || parallel <= 0 {
		return 0, fmt.Errorf("OPERATORTEST_PARALLEL=%s: give a number of trials such as 4", given)
	}
	return parallel, nil
}

// Once runs an experiment once for all behaviours that need its result.
func (runner *Runner) Once(name string, experiment func() (any, error)) (any, error) {
	once, _ := runner.lives.LoadOrStore(name, sync.OnceValues(experiment))
	return once.(func() (any, error))()
}
