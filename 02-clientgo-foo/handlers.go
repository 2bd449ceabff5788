package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// handleEvents registers the event handlers. They queue the keys of the Foos that a change may concern. A key
// deliberately does not say what has changed: a sync looks at everything, so events may be merged or repeated, and the
// next one makes up for any that were missed.
//
//workshop:step 2.7
func (c *controller) handleEvents(foos, deployments cache.SharedIndexInformer) error {
	fooHandler, err := foos.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.fooChanged,
		// Resyncs arrive as updates, too.
		UpdateFunc: func(_, foo any) { c.fooChanged(foo) },
		DeleteFunc: c.fooChanged,
	})
	if err != nil {
		return fmt.Errorf("register an event handler for Foos: %w", err)
	}
	//workshop:step 2.12a
	deploymentHandler, err := deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.deploymentChanged,
		UpdateFunc: c.deploymentUpdated,
		DeleteFunc: c.deploymentChanged,
	})
	//workshop:step 2.12a
	if err != nil {
		return fmt.Errorf("register an event handler for Deployments: %w", err)
	}
	//workshop:until 2.12a c.handlers = []cache.DoneChecker{fooHandler.HasSyncedChecker()}
	//workshop:step 2.12a
	c.handlers = []cache.DoneChecker{fooHandler.HasSyncedChecker(), deploymentHandler.HasSyncedChecker()}
	return nil
}

//workshop:step 2.7
func (c *controller) fooChanged(object any) {
	if foo := objectOf[*examplev1alpha1.Foo](object); foo != nil {
		c.queue.Add(cache.MetaObjectToName(foo))
	}
}

// deploymentUpdated handles the old and the new state of an updated Deployment. It ignores updates that change nothing,
// such as those from the new list that follows a broken watch.
//
//workshop:step 2.12a
func (c *controller) deploymentUpdated(before, after any) {
	older, newer := objectOf[*appsv1.Deployment](before), objectOf[*appsv1.Deployment](after)
	if older == nil || newer == nil || older.ResourceVersion == newer.ResourceVersion {
		return
	}
	c.deploymentChanged(older) // it may have had another owner
	c.deploymentChanged(newer)
}

// deploymentChanged queues the Foos that a change to the Deployment may concern.
//
//workshop:step 2.12a
func (c *controller) deploymentChanged(object any) {
	deployment := objectOf[*appsv1.Deployment](object)
	if deployment == nil {
		return
	}
	if foo := c.fooOf(deployment); foo != nil {
		c.queue.Add(cache.MetaObjectToName(foo))
	}
	//workshop:step 2.12b
	// The Foos whose spec names the Deployment may be waiting for the name.
	waiting, err := c.fooIndex.ByIndex(byDeploymentName, cache.MetaObjectToName(deployment).String())
	//workshop:step 2.12b
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("find the Foos that want Deployment %s: %w", deployment.Name, err))
		return
	}
	//workshop:step 2.12b
	for _, foo := range waiting {
		c.fooChanged(foo)
	}
}

// fooOf returns the Foo that controls the Deployment, or nil if there is none. The UID distinguishes it from a
// deleted Foo of the same name.
//
//workshop:step 2.12a
func (c *controller) fooOf(deployment *appsv1.Deployment) *examplev1alpha1.Foo {
	owner := controllingFoo(deployment)
	if owner == nil {
		return nil
	}
	foo, err := c.foos.Foos(deployment.Namespace).Get(owner.Name)
	if err != nil || foo.UID != owner.UID {
		return nil
	}
	return foo
}

// controllingFoo returns the owner reference to the Foo that controls the Deployment, or nil if no Foo controls it.
// Any version of the API group is accepted.
//
//workshop:step 2.10c
func controllingFoo(deployment *appsv1.Deployment) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(deployment)
	if owner == nil || owner.Kind != "Foo" {
		return nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != examplev1alpha1.GroupName {
		return nil
	}
	return owner
}

// objectOf returns the object of an event. If it is not a T, objectOf logs an error,
// and returns nil. When a watch has missed a deletion, the last known state arrives
// wrapped in a tombstone.
//
//workshop:step 2.7
func objectOf[T any](object any) T {
	//workshop:step 2.12a
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	typed, ok := object.(T)
	if !ok {
		utilruntime.HandleError(fmt.Errorf("an event brought %T instead of %T", object, typed))
	}
	return typed
}
