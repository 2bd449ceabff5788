package greeting

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	specTimeout = 30 * time.Second
	// convergeTimeout bounds how long the operator and the cluster may take for one change.
	convergeTimeout = 10 * time.Second
	// stopTimeout bounds how long the operator may take to stop. A Reconcile that has begun may use its whole timeout.
	stopTimeout = reconcileTimeout + 5*time.Second
)

var cluster = &testcluster.Cluster{CRDs: crds, Scheme: newScheme()}

func TestGreeting(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Greeting")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})

// startOperator runs the operator for one namespace until the spec ends.
func startOperator(namespace string) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		ended <- Run(ctx, cluster.Config, testOptions(namespace, cluster.Scheme))
	}()
	DeferCleanup(func() {
		stop()
		var err error
		Eventually(ended).WithTimeout(stopTimeout).Should(Receive(&err), "the operator must end when its context does")
		Expect(err).NotTo(HaveOccurred(), "the operator must end without an error")
	})
}

// testOptions returns options for a manager that watches one namespace and opens no port. A process may run many such
// managers.
func testOptions(namespace string, kinds *runtime.Scheme) ctrl.Options {
	return ctrl.Options{
		Scheme:     kinds,
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}
