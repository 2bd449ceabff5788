package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest/traffic"
)

// A trial can have a second namespace. Its operators then watch all namespaces, and the kit shows them
// only these two. The kit observes the second one through a Trial of its own, which has the same operators.

// NoSecondNamespace returns the reason why an operator can't be tried in two namespaces, or "" if it can.
func (runner *Runner) NoSecondNamespace() string {
	switch {
	case runner.IsClusterScoped():
		return fmt.Sprintf("%s is cluster-scoped", runner.Sample.GetKind())
	case !runner.Operator.Confine && !runner.Operator.AllNamespaces:
		return "the operator sees only one namespace: set Operator.AllNamespaces if it can watch all of them"
	}
	return ""
}

// Beside creates a second namespace and returns the Trial for it. It also makes the permissions in the operators' Roles
// apply to all namespaces. It must be called before the first operator is started.
func (t *Trial) Beside(ctx context.Context) (*Trial, error) {
	namespace, err := t.Cluster.CreateNamespace(ctx)
	if err != nil {
		return nil, err
	}
	made := t.newTrial(t.id, namespace.Name)
	made.began, made.secrets, made.first = t.began, t.secrets, t
	made.Cluster.Admin = recorder{t.Runner.Cluster.Admin, t.note}
	t.beside = made
	if err := t.GrantOutside(ctx); err != nil {
		return nil, err
	}
	if err := made.prepare(ctx); err != nil {
		return nil, err
	}
	return made, made.markForeign(ctx)
}

// namespaces returns the namespaces that the trial's operators see.
func (t *Trial) namespaces() []string {
	if t.beside == nil {
		return []string{t.Namespace}
	}
	return []string{t.Namespace, t.beside.Namespace}
}

// checkBeside returns an error if there is a second namespace in which operators left undeclared objects, or whose
// final state hasn't lasted.
func (t *Trial) checkBeside(ctx context.Context) error {
	if t.beside == nil {
		return nil
	}
	return errors.Join(t.beside.undeclared(ctx), t.beside.stays(ctx))
}

// clearBeside cleans up after the second namespace, if there is one, as clear does after the first.
func (t *Trial) clearBeside() error {
	if t.beside == nil {
		return nil
	}
	return errors.Join(t.beside.removeClusterWide(), t.beside.empty(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.beside.Namespace}}))
}

// WritesIn returns an operator's writes in the trial's namespace, except Events, Leases and writes that failed. It skips
// the operator's first requests; after is their number.
func (t *Trial) WritesIn(operator *Instance, after int) []traffic.Request {
	return slices.DeleteFunc(operator.Tap.Requests()[after:], func(request traffic.Request) bool {
		return request.Namespace != t.Namespace || !request.IsWrite() || request.IsEvent() || request.IsLease() || request.Status >= http.StatusBadRequest
	})
}
