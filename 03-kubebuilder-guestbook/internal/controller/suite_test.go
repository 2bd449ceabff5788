//workshop:given 3.3a

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

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/controller"
	"example.com/operator-workshop/operatortest/testcluster"
	// +kubebuilder:scaffold:imports
)

var (
	scheme  = newScheme()
	cluster = &testcluster.Cluster{CRDs: operator.CRDs, Scheme: scheme}
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Guestbook")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
	controller.SetK8sClient(cluster.Client)
})

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webappv1.AddToScheme(scheme))
	return scheme
}
