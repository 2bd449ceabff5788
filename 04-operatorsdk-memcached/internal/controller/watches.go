package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// SetupWithManager says which watch events queue which Memcached.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	// Without the CRD, the manager would wait two minutes for its cache.
	kind := cachev1alpha1.SchemeGroupVersion.WithKind("Memcached")
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("find the kind Memcached: %w", err)
	}
	// An object that blocks a child has the child's name, which is also the Memcached's.
	sameName := &handler.EnqueueRequestForObject{}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(options).
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&appsv1.Deployment{}, sameName, builder.WithPredicates(uncontrolled)).
		Watches(&corev1.Service{}, sameName, builder.WithPredicates(uncontrolled)).
		Watches(&policyv1.PodDisruptionBudget{}, sameName, builder.WithPredicates(uncontrolled)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(memcachedOf), builder.WithPredicates(visiblyChanged)).
		Complete(r)
}

// CacheByObject returns the manager's cache settings for pods: cache only pods with the operator's label, without the
// fields that keepEssentials drops.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Transform: keepEssentials, Label: labels.SelectorFromSet(labels.Set{managedByLabel: controllerName})},
	}
}

// memcachedOf returns a request for the Memcached that the pod's label names. Owns can't find that Memcached, because
// it looks only at the pod's own owner, which is a ReplicaSet.
func memcachedOf(_ context.Context, pod client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[instanceLabel]}}}
}

// uncontrolled passes watch events for objects that no Memcached of the same name controls; Owns handles the others.
// An object that a Memcached of another name controls passes, too, because Owns queues only that Memcached.
var uncontrolled = predicate.NewPredicateFuncs(func(object client.Object) bool {
	owner := metav1.GetControllerOf(object)
	return !isMemcached(owner) || owner.Name != object.GetName()
})

// visiblyChanged drops updates of pods if they can't change the Memcached's status.
var visiblyChanged = predicate.Funcs{UpdateFunc: func(change event.UpdateEvent) bool {
	before, wasPod := change.ObjectOld.(*corev1.Pod)
	after, isPod := change.ObjectNew.(*corev1.Pod)
	return wasPod && isPod && (isReady(before) != isReady(after) || isTerminating(before) != isTerminating(after) ||
		failureOf(before) != failureOf(after) || revisionOf(before) != revisionOf(after))
}}
