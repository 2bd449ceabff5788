package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// byConfigMap is the index of Guestbooks by the name of their ConfigMap.
const byConfigMap = "spec.configMapName"

// SetupWithManager defines which watch events queue which Guestbook.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	//workshop:step 3.6c
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &webappv1.Guestbook{}, byConfigMap, configMapOf)
	//workshop:step 3.6c
	if err != nil {
		return fmt.Errorf("index the Guestbooks: %w", err)
	}
	ofOthers := builder.WithPredicates(predicate.NewPredicateFuncs(uncontrolled))         //workshop:step 3.6a
	newContent := builder.WithPredicates(predicate.Funcs{UpdateFunc: contentChanged})     //workshop:step 3.6c
	newReadiness := builder.WithPredicates(predicate.Funcs{UpdateFunc: readinessChanged}) //workshop:step 3.6b
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&webappv1.Guestbook{}).
		Owns(&appsv1.Deployment{}).                                                                     //workshop:step 3.5i
		Owns(&corev1.Service{}).                                                                        //workshop:step 3.5j
		Watches(&appsv1.Deployment{}, &handler.EnqueueRequestForObject{}, ofOthers).                    //workshop:step 3.6a
		Watches(&corev1.Service{}, &handler.EnqueueRequestForObject{}, ofOthers).                       //workshop:step 3.6a
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.guestbooksWith), newContent). //workshop:step 3.6c
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(guestbookOf), newReadiness).          //workshop:step 3.6b
		Complete(r)
}

// CacheByObject defines which pods the manager's cache holds, and which parts of pods and ConfigMaps.
//
//workshop:step 3.7a
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Transform: keepDigest},
		&corev1.Pod{}:       {Transform: keepReadiness, Label: labels.SelectorFromSet(labels.Set{managedByLabel: controllerName})},
	}
}

// configMapOf returns the name under which a Guestbook is indexed.
//
//workshop:step 3.6c
func configMapOf(object client.Object) []string {
	guestbook, ok := object.(*webappv1.Guestbook)
	if !ok {
		return nil
	}
	return []string{guestbook.Spec.ConfigMapName}
}

// guestbooksWith returns the Guestbooks that refer to the ConfigMap settings. If it can't list them, it logs the error,
// and returns none.
//
//workshop:step 3.6c
func (r *GuestbookReconciler) guestbooksWith(ctx context.Context, settings client.Object) []reconcile.Request {
	guestbooks := &webappv1.GuestbookList{}
	// Later events of this watch wait for this function, so it must not wait for the client's own writes. They never
	// change the index.
	err := r.List(ctx, guestbooks, client.InNamespace(settings.GetNamespace()),
		client.MatchingFields{byConfigMap: settings.GetName()}, client.DisableReadYourWritesConsistency)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to find the Guestbooks of a ConfigMap", "configMap", client.ObjectKeyFromObject(settings))
		return nil
	}
	var requests []reconcile.Request
	for i := range guestbooks.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&guestbooks.Items[i])})
	}
	return requests
}

// guestbookOf returns the Guestbook of a pod, by its label: Owns does not follow the chain
// from the pod to its ReplicaSet, and on to the Deployment.
//
//workshop:step 3.6b
func guestbookOf(_ context.Context, pod client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[instanceLabel]}}}
}

// uncontrolled passes watch events for objects that the Guestbook of their name does not control; Owns handles the
// others. If such an object blocks a child, it has the Guestbook's name, so its events must queue that name. Its
// controller may be another Guestbook, which is all that Owns would queue.
//
//workshop:step 3.6a
func uncontrolled(object client.Object) bool {
	owner := metav1.GetControllerOf(object)
	return !isGuestbook(owner) || owner.Name != object.GetName()
}

// contentChanged drops updates of a ConfigMap that leave its content as it was.
//
//workshop:step 3.6c
func contentChanged(change event.UpdateEvent) bool {
	before, wasConfigMap := change.ObjectOld.(*corev1.ConfigMap)
	after, isConfigMap := change.ObjectNew.(*corev1.ConfigMap)
	return wasConfigMap && isConfigMap && digestOf(before) != digestOf(after)
}

// readinessChanged drops updates of a pod that don't affect the Guestbook's status.
//
//workshop:step 3.6b
func readinessChanged(change event.UpdateEvent) bool {
	before, wasPod := change.ObjectOld.(*corev1.Pod)
	after, isPod := change.ObjectNew.(*corev1.Pod)
	return wasPod && isPod && (isReady(before) != isReady(after) || isTerminating(before) != isTerminating(after) || revisionOf(before) != revisionOf(after) ||
		!readySince(before).Time.Equal(readySince(after).Time)) // after missed watch events, only this shows that the pod was not ready for a while
}
