package controller_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// The test kit tests the rest of the schema with the samples.
var _ = Describe("the schema", func() {
	It("has a default for the port and the memory, and none for the image", func(ctx SpecContext) {
		memcached := newMemcached(cluster.Namespace(ctx), "modest", 1)
		create(ctx, memcached)
		Expect(memcached.Spec).To(Equal(cachev1alpha1.MemcachedSpec{Size: 1, ContainerPort: 11211, MemoryMegabytes: 64}),
			"see the defaults in api/v1alpha1/memcached_types.go; the operator chooses the image")
	}, SpecTimeout(specTimeout))
})
