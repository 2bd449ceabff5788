package controller_test

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/manager"
)

// managerOptions returns the options that cmd/main.go sets, except those of the webhooks, which the suite
// serves itself.
func managerOptions(ctx context.Context, options manager.Options) ctrl.Options {
	return options.ForManager(ctx, ctrl.Options{
		Scheme:           scheme,
		LeaderElectionID: "password.example.com",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	})
}
