package main

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	"example.com/operator-workshop/lifecycle"
	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// specTimeout bounds each spec. Most specs take less than a second.
	specTimeout = 30 * time.Second
	// convergeTimeout bounds how long the controller and the cluster may take for one change.
	convergeTimeout = 10 * time.Second
	pollInterval    = 20 * time.Millisecond
	// quietTime is how long a spec checks that something does not happen.
	quietTime = time.Second
)

var cluster = &testcluster.Cluster{CRDs: operator.CRDs, Scheme: newScheme()}

// TestMain discards what is logged outside of specs, because table tests with bad input log errors on purpose.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

func TestFoo(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Foo")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})

func newScheme() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(kinds))
	utilruntime.Must(examplev1alpha1.AddToScheme(kinds))
	return kinds
}

// testOptions returns options for a controller that starts no servers. If namespace is empty, the controller watches
// all namespaces.
func testOptions(namespace string) options {
	options := defaultOptions()
	options.namespace = namespace
	options.MetricsBindAddress, options.HealthProbeBindAddress = lifecycle.Disabled, lifecycle.Disabled
	return options
}

// startController runs a controller until the returned function is called or the spec ends.
func startController(options options) (stop func()) {
	end, ended := runWith(nil, options)
	return func() {
		GinkgoHelper()
		end()
		var err error
		Eventually(ended).WithTimeout(convergeTimeout).Should(Receive(&err), "run must end after the signal to stop")
		Expect(err).NotTo(HaveOccurred())
	}
}

// newFoo returns a valid Foo that does not exist yet.
func newFoo(namespace, name, deploymentName string) *examplev1alpha1.Foo {
	return &examplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       examplev1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: 1},
	}
}

// expectReason reads foo again until the condition Ready has the reason and describes the current generation.
func expectReason(ctx context.Context, foo *examplev1alpha1.Foo, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(foo), foo)).To(Succeed())
		ready := meta.FindStatusCondition(foo.Status.Conditions, examplev1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil(), "the Foo has no condition Ready yet, see updateStatus in status.go")
		g.Expect(ready.Reason).To(Equal(reason), "Ready is %s: %s", ready.Status, ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(foo.Generation))
		g.Expect(foo.Status.ObservedGeneration).To(Equal(foo.Generation))
	}).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(pollInterval).Should(Succeed())
}

func getDeployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)
	return deployment, err
}
