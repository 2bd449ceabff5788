package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/testcluster"
)

// preparer is the client that Operator.Prepare uses to create the objects to which the sample refers, and
// Unmeetable.Prepare to create those that keep the operator from meeting a spec. It records that they are not the
// operator's work. One of them may be another custom resource that the operator reconciles.
type preparer struct {
	client.Client
	trial *Trial
	made  []client.Object
}

// Create implements client.Writer.
func (p *preparer) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	namespaced, err := p.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if !namespaced {
		if err := p.trial.share(ctx, object); err != nil {
			return err
		}
	}
	if err := p.Client.Create(ctx, object, options...); err != nil {
		return err
	}
	p.trial.Foreign[object.GetUID()] = true
	p.made = append(p.made, object)
	if !namespaced {
		p.trial.clusterWide = append(p.trial.clusterWide, object)
	}
	return nil
}

func (t *Trial) preparer() *preparer { return &preparer{Client: t.Cluster.Admin, trial: t} }

// removeClusterWide deletes the cluster-scoped objects that Prepare created, which could affect other trials. The
// operators have been killed, so it removes the finalizers, too.
func (t *Trial) removeClusterWide() error {
	ctx, cancel := context.WithTimeout(context.Background(), testcluster.NamespaceTimeout)
	defer cancel()
	var errs []error
	for _, object := range t.clusterWide {
		err := t.Runner.Cluster.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && len(object.GetFinalizers()) > 0 {
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			err = t.Runner.Cluster.Admin.Patch(ctx, object, none)
		}
		if err == nil {
			err = t.Runner.Cluster.Admin.Delete(ctx, object)
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...)
}

// prepare creates what the sample refers to.
func (t *Trial) prepare(ctx context.Context) error {
	if t.Operator.Prepare == nil {
		return nil
	}
	writer := t.preparer()
	if err := t.Operator.Prepare(ctx, writer, t.Namespace); err != nil {
		return fmt.Errorf("prepare the namespace: %w", err)
	}
	var names []string
	for _, object := range writer.made {
		names = append(names, strings.ReplaceAll(object.GetName(), t.Namespace, manifest.Placeholder))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Runner.prepared = names
	return nil
}

// Prepared returns the names of the objects that Operator.Prepare created in one of the trials. The placeholder stands for
// the name of the trial's namespace. Prepared returns none until Prepare has run in a trial.
func (runner *Runner) Prepared() []string {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return slices.Clone(runner.prepared)
}

// isForeign reports whether an object, or the object that controls it, is known to be someone else's. For example, a
// custom resource that Prepare created counts as someone else's, and controls its children.
func (t *Trial) isForeign(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return t.Foreign[object.GetUID()] || controller != nil && t.Foreign[controller.UID]
}
