package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// managedByLabel marks the operator's Secrets.
const managedByLabel = "app.kubernetes.io/managed-by"

// SetupWithManager says which events make a worker look at which Password.
func (r *PasswordReconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	// Without the definition the manager would wait for it, for two minutes.
	kind := secretv1.SchemeGroupVersion.WithKind("Password")
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("find the kind Password: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(options).
		For(&secretv1.Password{}).
		Owns(&corev1.Secret{}).
		Complete(r)
}

// CacheByObject says what of which objects the manager's cache keeps: of all the
// cluster's Secrets those that the operator made. The API server sends no others.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.SelectorFromSet(ownLabels())},
	}
}

func ownLabels() labels.Set {
	return labels.Set{managedByLabel: controllerName}
}
