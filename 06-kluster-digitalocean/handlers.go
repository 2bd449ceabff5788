package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// handleEvents registers handlers that queue a Kluster's key when the Kluster or the Secret with its kubeconfig
// changes, or when its token's Secret changes while it waits after a terminal error. The key doesn't say what has
// changed: a worker reads the whole state, so it doesn't matter whether events are merged or repeated.
func (c *controller) handleEvents(klusters, secrets, tokens cache.SharedIndexInformer) error {
	ofKlusters, err := klusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.klusterChanged,
		// Resyncs also arrive as updates, and each resync queues every Kluster, even if it has not changed.
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
	ofTokens, err := tokens.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.tokenChanged,
		UpdateFunc: func(_, secret any) { c.tokenChanged(secret) },
	})
	if err != nil {
		return fmt.Errorf("register the event handler of tokens: %w", err)
	}
	c.handlers = []cache.DoneChecker{ofKlusters.HasSyncedChecker(), ofSecrets.HasSyncedChecker(), ofTokens.HasSyncedChecker()}
	return nil
}

func (c *controller) klusterChanged(object any) {
	if kluster := objectOf[*klusterv1alpha1.Kluster](object); kluster != nil {
		c.queue.Add(cache.MetaObjectToName(kluster))
	}
}

// secretUpdated queues the Kluster that controlled the Secret before the update, and the one that controls it now. It
// drops updates that change nothing, which occur when a watch breaks and the informer lists all Secrets again.
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

// tokenChanged queues the Klusters that name the Secret and wait after a terminal error, because a new token may be
// what they need. The other Klusters use it in their next reconcile. They are not queued: when a Kluster begins or
// ceases to use the Secret, the operator changes the Secret's finalizers, and that event would queue all the others.
func (c *controller) tokenChanged(object any) {
	secret := objectOf[*metav1.PartialObjectMetadata](object)
	if secret == nil {
		return
	}
	klusters, err := c.klusters.Klusters(secret.Namespace).List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("list the Klusters of namespace %s in the cache: %w", secret.Namespace, err))
	}
	for _, kluster := range klusters {
		key := cache.MetaObjectToName(kluster)
		if kluster.Spec.TokenSecret.Name == secret.Name && c.retryDelays.NumRequeues(key) > 0 {
			c.retryDelays.Forget(key)
			c.queue.Add(key)
		}
	}
}

// controllingKluster returns the owner reference to the Kluster that controls the Secret, or nil if no Kluster does.
// The reference may name any version of the API group.
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

// objectOf returns the object of an event, or nil if the object is not a T. If a watch has missed a deletion, the
// object's last known state arrives wrapped in a tombstone.
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
