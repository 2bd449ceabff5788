package operatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/traffic"
)

// trial is one experiment in a namespace of its own.
type trial struct {
	*lab
	namespace string
	// theirs are the objects that are not the operator's work.
	theirs map[types.UID]bool
	// obstacles are the unmeetable specs whose way was prepared.
	obstacles map[string]bool
	instances []*instance
	// attend looks after the operators before each look at the cluster. It is an
	// error there if one ended on its own; some trials start another in its place.
	attend func() error
}

// try runs an experiment and clears up after it. The request logs of all
// operators that it ran are part of its error.
func (l *lab) try(ctx context.Context, experiment func(context.Context, *trial) error) (err error) {
	namespace, err := l.cluster.createNamespace(ctx)
	if err != nil {
		return err
	}
	tried := &trial{lab: l, namespace: namespace.Name, theirs: map[types.UID]bool{}, obstacles: map[string]bool{}}
	tried.attend = tried.ended
	defer func() {
		if err != nil {
			err = &failure{cause: err, logs: tried.logs()}
		}
		err = errors.Join(err, tried.clear(namespace))
	}()
	if err := tried.grantRoles(ctx); err != nil {
		return err
	}
	if l.operator.Prepare != nil {
		if err := l.operator.Prepare(ctx, l.cluster.admin, namespace.Name); err != nil {
			return fmt.Errorf("prepare the namespace: %w", err)
		}
	}
	if err := tried.noteTheirs(ctx); err != nil {
		return err
	}
	if err := experiment(ctx, tried); err != nil {
		// An operator that works elsewhere disturbs all trials: that is the fault to mend first.
		return errors.Join(tried.confined(), err)
	}
	return errors.Join(tried.confined(), tried.undeclared(ctx))
}

// grantRoles lets the operator use the permissions of its Roles in the trial's namespace.
func (t *trial) grantRoles(ctx context.Context) error {
	for _, role := range t.roles {
		granted := role.DeepCopy()
		granted.Namespace = t.namespace
		binding := &rbacv1.RoleBinding{
			ObjectMeta: *granted.ObjectMeta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: granted.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: t.user}},
		}
		if err := errors.Join(t.cluster.admin.Create(ctx, granted), t.cluster.admin.Create(ctx, binding)); err != nil {
			return fmt.Errorf("grant role %s: %w", granted.Name, err)
		}
		if err := t.allowed(ctx, granted.Rules); err != nil {
			return fmt.Errorf("grant role %s: %w", granted.Name, err)
		}
	}
	return nil
}

// allowed waits until the API server knows of a new Role: it learns of one from a watch, as everybody does.
func (t *trial) allowed(ctx context.Context, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 || len(rules[0].Resources) == 0 {
		return nil
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: t.namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if names := rules[0].ResourceNames; len(names) > 0 {
		asked.Name = names[0]
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: t.user, Groups: []string{"system:authenticated"}, ResourceAttributes: asked,
		}}
		err := t.cluster.admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
}

// election lets the operator take part in an election in the trial's namespace.
func (t *trial) election(candidate string) *LeaderElection {
	return &LeaderElection{
		Namespace: t.namespace, Identity: candidate,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	}
}

// patientElection is one that no short stall of the machine decides, for trials of something else.
func (t *trial) patientElection(candidate string) *LeaderElection {
	election := t.election(candidate)
	election.LeaseDuration, election.RenewDeadline = 5*leaseDuration, 5*renewDeadline
	return election
}

// noteTheirs takes all that the namespace holds now as somebody else's, but for the children of resources.
func (t *trial) noteTheirs(ctx context.Context) error {
	resources, err := t.list(ctx, t.sample.GroupVersionKind())
	if err != nil {
		return err
	}
	for _, kind := range t.childKinds() {
		objects, err := t.list(ctx, kind)
		if err != nil {
			return err
		}
		for _, object := range objects {
			ours := func(resource *unstructured.Unstructured) bool { return metav1.IsControlledBy(object, resource) }
			if !slices.ContainsFunc(resources, ours) {
				t.theirs[object.GetUID()] = true
			}
		}
	}
	return nil
}

// clear ends the operators. Of a shared cluster it also gives the namespace up; the verdict
// is known, so finalizers that hold a resource now are taken off. Another cluster goes away
// as a whole, and emptying a namespace costs the API server more than a trial does.
func (t *trial) clear(namespace *corev1.Namespace) error {
	var errs []error
	for _, instance := range t.instances {
		errs = append(errs, instance.kill())
	}
	if !t.cluster.shared {
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), namespaceTimeout)
	defer cancel()
	// An operator may hold what it needs, too, such as a Secret of a kind that it also makes.
	for _, kind := range append(t.childKinds(), t.sample.GroupVersionKind()) {
		objects, err := t.list(ctx, kind)
		errs = append(errs, err)
		for _, object := range objects {
			if len(object.GetFinalizers()) > 0 {
				none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				errs = append(errs, client.IgnoreNotFound(t.cluster.admin.Patch(ctx, object, none)))
			}
		}
	}
	return errors.Join(append(errs, client.IgnoreNotFound(t.cluster.admin.Delete(ctx, namespace)))...)
}

// settle creates a resource and returns what it ends like.
func (t *trial) settle(ctx context.Context, operator *instance, resource *unstructured.Unstructured) (state, error) {
	if err := t.create(ctx, resource); err != nil {
		return nil, err
	}
	if err := t.converge(ctx, resource); err != nil {
		return nil, err
	}
	if err := t.rest(ctx, operator); err != nil {
		return nil, err
	}
	return t.state(ctx)
}

// eventually looks until the condition holds, and returns what it said last otherwise.
func (t *trial) eventually(ctx context.Context, what string, condition func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, t.operator.timeout())
	defer cancel()
	var last, ended error
	err := wait.PollUntilContextCancel(bounded, pollInterval, true, func(ctx context.Context) (bool, error) {
		if ended = t.attend(); ended != nil {
			return false, ended
		}
		err := condition(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("expected %s\nfound, when the time of the spec was up: %w: %w", what, last, ctx.Err())
	}
	if last == nil || ended != nil {
		last = err
	}
	return fmt.Errorf("expected %s\nfound, after %s at most: %w", what, t.operator.timeout(), last)
}

// throughout looks for a while at what must hold all the time.
func (t *trial) throughout(ctx context.Context, duration time.Duration, what string, condition func(context.Context) error) error {
	end := time.Now().Add(duration)
	return t.until(ctx, func() bool { return time.Now().After(end) }, what, condition)
}

// until looks at what must hold all the time until that is over.
func (t *trial) until(ctx context.Context, over func() bool, what string, condition func(context.Context) error) error {
	var failed error // its cause may be the end of some other context
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		if failed = t.attend(); failed == nil {
			failed = condition(ctx)
		}
		return failed == nil && over(), failed
	})
	if ctx.Err() != nil {
		return fmt.Errorf("expected %s\nfound: the time of the spec is up: %w", what, ctx.Err())
	}
	if failed != nil {
		return fmt.Errorf("expected %s\nfound: %w", what, failed)
	}
	return nil
}

// logs are the requests of every operator of the trial.
func (t *trial) logs() [][]traffic.Request {
	var logs [][]traffic.Request
	for _, instance := range t.instances {
		logs = append(logs, instance.tap.Requests())
	}
	return logs
}

// ended returns an error if an operator ended that nobody stopped.
func (t *trial) ended() error {
	for i, instance := range t.instances {
		if instance.stopped {
			continue
		}
		select {
		case <-instance.done:
			return errors.Join(fmt.Errorf("operator %d ended on its own", i+1), instance.err)
		default:
		}
	}
	return nil
}
