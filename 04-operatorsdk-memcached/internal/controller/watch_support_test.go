package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// watchVersions returns a channel with every version of the Memcached, from the current one on, until the spec ends.
func watchVersions(ctx context.Context, memcached *cachev1alpha1.Memcached) <-chan *cachev1alpha1.Memcached {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	watch, err := watcher.Watch(ctx, &cachev1alpha1.MemcachedList{}, client.InNamespace(memcached.Namespace), client.MatchingFields{"metadata.name": memcached.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watch.Stop)
	versions := make(chan *cachev1alpha1.Memcached, 100)
	go func() {
		for event := range watch.ResultChan() {
			if version, isMemcached := event.Object.(*cachev1alpha1.Memcached); isMemcached {
				versions <- version
			}
		}
	}()
	return versions
}

// versionsUpTo returns the versions from the channel, up to and including the given one.
func versionsUpTo(ctx context.Context, versions <-chan *cachev1alpha1.Memcached, last *cachev1alpha1.Memcached) []*cachev1alpha1.Memcached {
	GinkgoHelper()
	var seen []*cachev1alpha1.Memcached
	for len(seen) == 0 || seen[len(seen)-1].ResourceVersion != last.ResourceVersion {
		var version *cachev1alpha1.Memcached
		Eventually(versions).WithContext(ctx).WithTimeout(convergeTimeout).Should(Receive(&version))
		seen = append(seen, version)
	}
	return seen
}
