package controller_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/operatortest/testcluster"
	// +kubebuilder:scaffold:imports
)

var (
	scheme  = newScheme()
	cluster = &testcluster.Cluster{CRDs: operator.CRDs, Scheme: scheme, Stages: []string{"testdata/stages.yaml"}}
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Memcached")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	return scheme
}
