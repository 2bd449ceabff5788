package behaviours

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// Deleting a namespace deletes everything in it, such as the resource, its children, Secrets that its spec names, and
// Roles. Apart from the pods, which go first, the order is undefined. Nothing can be created in the namespace any more
// (403, NamespaceTerminating).
var namespaceDeletion = behaviour{
	name:    "namespace",
	promise: "does not block the deletion of a whole namespace",
	advice: "what the clean-up needs: it must not create or repair anything, because the API server refuses each create in a terminating namespace; " +
		"it must expect that children are gone; an object that it needs for cleaning up outside Kubernetes, such as a Secret, must have a finalizer, too, " +
		"or its content must be known from elsewhere; " +
		"don't report or retry NamespaceTerminating: the resource itself is about to be deleted",
	check: func(ctx context.Context, runner *trial.Runner) error {
		return runner.Try(ctx, "the namespace is deleted, and the children go first", deleteNamespace)
	},
}

// deleteNamespace deletes the namespace, and then the children, usually before Kubernetes deletes them or the resource.
// For an operator, it is hardest if the children go before the resource; Kubernetes' own order can differ every time.
func deleteNamespace(ctx context.Context, t *trial.Trial) error {
	if t.IsClusterScoped() {
		t.NotTried = fmt.Sprintf("%s is cluster-scoped: no namespace contains it", t.Sample.GetKind())
		return nil
	}
	if err := t.GrantOutside(ctx); err != nil {
		return err
	}
	operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(nil)
	if _, err := t.Establish(ctx, operator, resource); err != nil {
		return err
	}
	children, err := childrenOf(ctx, t, resource)
	if err != nil {
		return err
	}
	if err := t.DeleteNamespace(ctx); err != nil {
		return err
	}
	for _, child := range children {
		if err := client.IgnoreNotFound(t.Delete(ctx, child)); err != nil { // Kubernetes may have been faster
			return err
		}
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	if err := t.WaitNamespaceEmptied(ctx); err != nil {
		return err
	}
	// Kubernetes may wait for several seconds before it looks at the namespace again.
	if err := t.WaitGone(trial.Patiently(ctx), resource, "its namespace was deleted"); err != nil {
		return err
	}
	if err := t.WaitNamespaceGone(ctx); err != nil {
		return err
	}
	return t.WaitAtRest(ctx, operator)
}
