package operatortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
)

// parallelTrials is how many trials of one behaviour run side by side. They
// mostly wait for the cluster, so it is more than there are cores.
const parallelTrials = 8

// lab is where one operator is tried: its cluster, its sample and its user.
type lab struct {
	operator Operator
	cluster  *Cluster
	sample   *unstructured.Unstructured
	// user has the permissions of the operator's ClusterRoles, and where a trial grants them those of its Roles.
	user  string
	roles []*rbacv1.Role
	rules []rule

	mu sync.Mutex
	// runs holds what is closed when an operator's Run has returned, of all that were started.
	runs []<-chan struct{}
	// ends holds what a fresh resource of a spec ends like, by the spec in JSON.
	ends map[string]*end

	// specsOnce guards what the definition of the sample's kind says, and drafts,
	// the namespace in which specs are tried out without being stored.
	specsOnce  sync.Once
	knownSpecs *specs
	specsErr   error
	drafts     string
	// seed is what everything random is drawn from; Ginkgo's if zero.
	seed int64
	// shrinkTime bounds the search for a shorter journey.
	shrinkTime time.Duration
}

type end struct {
	once  sync.Once
	state state
	err   error
	// cutShort says that the caller that tried it ran out of time, so err says nothing about the spec.
	cutShort bool
}

// rule is one of an operator's roles, as it was written.
type rule struct {
	file string
	rbacv1.PolicyRule
}

func newLab(ctx context.Context, operator Operator, cluster *Cluster) (*lab, error) {
	made := &lab{operator: operator, cluster: cluster, ends: map[string]*end{}, shrinkTime: shrinkTime}
	if operator.Run == nil || operator.Sample == "" || len(operator.Roles) == 0 {
		return nil, errors.New("describe the operator's Run, Sample and Roles, or its behaviours can't be tried")
	}
	objects, err := readObjects(operator.Sample)
	if err != nil {
		return nil, err
	}
	made.sample = objects[0]
	made.user = "operator-" + utilrand.String(8)
	for _, file := range operator.Roles {
		if err := made.grant(ctx, file); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// grant gives the operator's user the permissions of a file with roles.
func (l *lab) grant(ctx context.Context, file string) error {
	objects, err := readObjects(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		if err := l.grantRole(ctx, file, object); err != nil {
			return fmt.Errorf("%s: grant %s %s: %w", file, object.GetKind(), object.GetName(), err)
		}
	}
	if !slices.ContainsFunc(l.rules, func(rule rule) bool { return rule.file == file }) {
		return fmt.Errorf("%s holds no Role and no ClusterRole", file)
	}
	return nil
}

func (l *lab) grantRole(ctx context.Context, file string, object *unstructured.Unstructured) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: l.user}}
	meta := metav1.ObjectMeta{Name: l.user + "-" + object.GetName()}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: object.GetKind(), Name: meta.Name}
	switch object.GetKind() {
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return err
		}
		l.addRules(file, role.Rules)
		made := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
		defer l.cluster.note(made)
		defer l.cluster.note(binding)
		return errors.Join(l.cluster.admin.Create(ctx, made), l.cluster.admin.Create(ctx, binding))
	case "Role":
		role := &rbacv1.Role{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return err
		}
		l.addRules(file, role.Rules)
		l.roles = append(l.roles, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules})
	}
	return nil // bindings name the operator's own account
}

func (l *lab) addRules(file string, rules []rbacv1.PolicyRule) {
	for _, granted := range rules {
		l.rules = append(l.rules, rule{file: file, PolicyRule: granted})
	}
}

// config connects as the operator's user.
func (l *lab) config() *rest.Config {
	config := rest.CopyConfig(l.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: l.user, Groups: []string{"system:authenticated"}}
	return config
}

func (l *lab) noteRun(ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, ended)
}

// allEnded waits until no operator runs any more, neither one that was killed.
func (l *lab) allEnded(ctx context.Context) error {
	l.mu.Lock()
	runs := slices.Clone(l.runs)
	l.mu.Unlock()
	for _, ended := range runs {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of operators that were killed: %w", ctx.Err())
		}
	}
	return nil
}

// childKinds are the kinds of all declared children, each once.
func (l *lab) childKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, child := range l.operator.Children {
		if !slices.Contains(kinds, child.Kind) {
			kinds = append(kinds, child.Kind)
		}
	}
	return kinds
}

// resource is a new one like the sample, with another spec unless that is nil.
func (l *lab) resource(spec map[string]any) *unstructured.Unstructured {
	made := l.sample.DeepCopy()
	made.SetNamespace("")
	if spec != nil {
		made.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return made
}

// sampleSpec is a copy of the sample's spec.
func (l *lab) sampleSpec() map[string]any {
	spec, _, _ := unstructured.NestedMap(l.sample.Object, "spec")
	return spec
}

// fresh is what a new resource of a spec ends like. It is found out once.
func (l *lab) fresh(ctx context.Context, spec map[string]any) (state, error) {
	key, err := json.Marshal(l.resource(spec).Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("write a spec as JSON: %w", err)
	}
	l.mu.Lock()
	known, found := l.ends[string(key)]
	if !found {
		known = &end{}
		l.ends[string(key)] = known
	}
	l.mu.Unlock()
	known.once.Do(func() {
		known.err = l.try(ctx, func(ctx context.Context, trial *trial) (err error) {
			known.state, err = trial.settle(ctx, trial.start(RunOptions{}), l.resource(spec))
			return err
		})
		known.cutShort = known.err != nil && ctx.Err() != nil
	})
	if known.cutShort {
		l.forget(string(key), known)
		if ctx.Err() == nil {
			return l.fresh(ctx, spec) // only the other caller was cut short
		}
	}
	if known.err != nil {
		return nil, fmt.Errorf("see what a new resource of the same spec ends like: %w", known.err)
	}
	return known.state, nil
}

// forget lets the end of a spec be found out again.
func (l *lab) forget(key string, known *end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[key] == known {
		delete(l.ends, key)
	}
}

// each runs a function for 0 to n-1, several side by side, and returns the
// error of the lowest number that fails. One that fails ends those above it
// only, so that the same number is reported whichever is quicker.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	var mu sync.Mutex
	lowest, first := n, error(nil)
	cancels := make([]context.CancelFunc, n)
	contexts := make([]context.Context, n)
	for i := range n {
		contexts[i], cancels[i] = context.WithCancel(ctx)
		defer cancels[i]()
	}
	group := &errgroup.Group{}
	group.SetLimit(parallelTrials)
	for i := range n {
		group.Go(func() error {
			if contexts[i].Err() != nil {
				return ctx.Err() // a lower one failed, or the time is up
			}
			err := do(contexts[i], i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil || i > lowest {
				return nil
			}
			lowest, first = i, err
			for _, cancel := range cancels[i+1:] {
				cancel()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && first == nil {
		return err
	}
	return first
}
