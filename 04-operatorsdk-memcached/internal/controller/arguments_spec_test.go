package controller_test

//workshop:given 4.14c

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The test kit can't append an argument, because its JSON merge patches replace a list as a whole.
var _ = Describe("the arguments", func() {
	It("of others stay when the connection limit changes", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "tuned", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		add := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--disable-cas"}]`))
		Expect(cluster.Client.Patch(ctx, getDeployment(ctx, Default, memcached), add)).To(Succeed())

		for _, step := range []struct{ limit, argument string }{{"512", "--conn-limit=512"}, {"1024", "--conn-limit=1024"}, {"null", ""}} {
			patch(ctx, memcached, `{"spec":{"maxConnections":%s}}`, step.limit)
			want := []string{"--port=11211", "--memory-limit=64"}
			if step.argument != "" {
				want = append(want, step.argument)
			}
			eventually(ctx, func(g Gomega) {
				container := getDeployment(ctx, g, memcached).Spec.Template.Spec.Containers[0]
				g.Expect(container.Args).To(Equal(append(want, "--disable-cas")), "see replaceArguments in desired.go")
			})
		}
		expectConditions(ctx, memcached, converged)
	}, SpecTimeout(specTimeout))
})
