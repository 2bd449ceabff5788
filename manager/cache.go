package manager

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// endingCache stops waiting for its informers as soon as the process is told to stop.
//
// Without endingCache, a manager of controller-runtime v0.25.2 that is told to stop while its caches are being filled
// keeps waiting, with one CPU busy, until the API server answers: see
// github.com/kubernetes-sigs/controller-runtime/pull/3440.
//
// This happens only if an informer exists before the manager starts, for instance because of a field index. Informers
// that start with the controllers stop in time.
type endingCache struct {
	cache.Cache
	process context.Context
}

func newCache(process context.Context, config *rest.Config, options cache.Options) (cache.Cache, error) {
	wrapped, err := cache.New(config, options)
	return endingCache{Cache: wrapped, process: process}, err
}

// WaitForCacheSync returns true when the cache is filled or the process is told to stop, and false if ctx ends first.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.process, cancel)
	defer stop()
	return c.Cache.WaitForCacheSync(ctx) || c.process.Err() != nil
}
