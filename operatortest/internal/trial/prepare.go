package trial

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preparer is the client with which Prepare creates the objects to which a sample refers, or those that block an
// unmeetable spec. It records that they are not the operator's work. One of them may be another custom resource that the
// operator reconciles.
type preparer struct {
	client.Client
	foreign map[types.UID]bool
	made    []client.Object
}

// Create implements client.Writer.
func (p *preparer) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	err := p.Client.Create(ctx, object, options...)
	if err == nil {
		p.foreign[object.GetUID()] = true
		p.made = append(p.made, object)
	}
	return err
}

func (t *Trial) preparer() *preparer {
	return &preparer{Client: t.Cluster.Admin, foreign: t.Foreign}
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Runner.prepared = writer.made
	return nil
}

// Prepared returns the objects that Operator.Prepare created in the namespace of one of the trials. They are known once
// a trial has begun.
func (runner *Runner) Prepared() []client.Object {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return slices.Clone(runner.prepared)
}

// isForeign reports whether an object is someone else's, or is controlled by such an object, as a child of another
// custom resource is.
func (t *Trial) isForeign(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return t.Foreign[object.GetUID()] || controller != nil && t.Foreign[controller.UID]
}
