package trial

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preparer is the client that makes what a sample refers to, and notes that it is not the operator's work. An operator may look
// after such an object, too: if the sample refers to another of its custom resources.
type preparer struct {
	client.Client
	foreign map[types.UID]bool
}

// Create implements client.Writer.
func (p preparer) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	err := p.Client.Create(ctx, object, options...)
	if err == nil {
		p.foreign[object.GetUID()] = true
	}
	return err
}

func (t *Trial) preparer() client.Client {
	return preparer{Client: t.Cluster.Admin, foreign: t.Foreign}
}

// isForeign tells whether an object is someone else's, or controlled by one that is: the child of another custom resource.
func (t *Trial) isForeign(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return t.Foreign[object.GetUID()] || controller != nil && t.Foreign[controller.UID]
}
