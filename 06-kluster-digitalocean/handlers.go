package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// handleEvents makes every change of a Kluster or of its Secret queue the Kluster's key. The key doesn't tell what has
// changed: a worker reads the whole state, so it doesn't matter whether events are merged, repeated or missed.
func (c *controller) handleEvents(klusters, secrets cache.SharedIndexInformer) error {
	ofKlusters, err := klusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.klusterChanged,
		// Resyncs arrive as updates, too: they make up for missed changes.
		UpdateFunc: func(_, kluster any) { c.klusterChanged(kluster) },
		DeleteFunc: c.klusterChanged,
	})
	if err != nil {
		return fmt.Errorf("register the event handler of Klusters: %w", err)
	}
	ofSecrets, err := secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.secretChanged,
		UpdateFunc: c.secretUpdated,
		DeleteFunc: c.secretChanged,
	})
	if err != nil {
		return fmt.Errorf("register the event handler of Secrets: %w", err)
	}
	c.handlers = []cache.DoneChecker{ofKlusters.HasSyncedChecker(), ofSecrets.HasSyncedChecker()}
	return nil
}

func (c *controller) klusterChanged(object any) {
	if kluster := objectOf[*klusterv1alpha1.Kluster](object); kluster != nil {
		c.queue.Add(cache.MetaObjectToName(kluster))
	}
}

// secretUpdated drops updates that change nothing: they come from the new list
// that follows a broken watch.
func (c *controller) secretUpdated(before, after any) {
	older, newer := objectOf[*corev1.Secret](before), objectOf[*corev1.Secret](after)
	if older == nil || newer == nil || older.ResourceVersion == newer.ResourceVersion {
		return
	}
	c.secretChanged(older) // it may have had another owner
	c.secretChanged(newer)
}

// secretChanged queues the Kluster that controls the Secret.
func (c *controller) secretChanged(object any) {
	secret := objectOf[*corev1.Secret](object)
	if secret == nil {
		return
	}
	if owner := controllingKluster(secret); owner != nil {
		c.queue.Add(cache.NewObjectName(secret.Namespace, owner.Name))
	}
}

// controllingKluster returns the owner reference to the Kluster that controls the
// Secret, nil if something else or nothing does. Any version of the group counts.
func controllingKluster(secret *corev1.Secret) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil || owner.Kind != "Kluster" {
		return nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != klusterv1alpha1.GroupName {
		return nil
	}
	return owner
}

// objectOf returns the object of an event, or nil if it is not a T. When a watch has
// missed a deletion, the last known state arrives wrapped in a tombstone.
func objectOf[T any](object any) T {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	typed, ok := object.(T)
	if !ok {
		utilruntime.HandleError(fmt.Errorf("an event brought %T instead of %T", object, typed))
	}
	return typed
}
