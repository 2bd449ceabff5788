package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
	"example.com/operator-workshop/lifecycle"
	"example.com/operator-workshop/operatortest/testcluster"
)

var (
	cluster = &testcluster.Cluster{CRDs: operator.CRDs, Scheme: newScheme()}
	clouds  = newAccounts()
)

// Gomega prints an object with all of its fields. Those of a cluster fill a page, but only a few matter.
var _ = format.RegisterCustomFormatter(func(value any) (text string, handled bool) {
	switch value := value.(type) {
	case doks.Cluster:
		return describe(value), true
	case doks.Entry:
		return value.String(), true
	}
	return "", false
})

// describe returns a string that shows those fields of a cluster that the tests compare.
func describe(cluster doks.Cluster) string {
	text := fmt.Sprintf("cluster %s with the ID %s has the state %s, the version %s, and the tags %q", cluster.Name, cluster.ID, cluster.Status.State, cluster.Version, cluster.Tags)
	for _, pool := range cluster.NodePools {
		text += fmt.Sprintf("; pool %s has %d %s", pool.Name, pool.Count, pool.Size)
	}
	return text
}

func TestKluster(t *testing.T) {
	RegisterFailHandler(Fail)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(logLevel), textlogger.Output(logged)))
	log.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true)) // otherwise klog uses its own flag -v, which is 0
	RunSpecs(t, "Kluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(expectSecrecy)
	DeferCleanup(clouds.close)
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
	//workshop:step 6.13d
	if GinkgoLabelFilter() == "" { // with a filter, only the shared tests run: the specs of this stage have no labels
		terminateNamespace(ctx)
	}
})

func newScheme() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(kinds))
	utilruntime.Must(klusterv1alpha1.AddToScheme(kinds))
	return kinds
}

// testOptions returns options for an operator that works in one namespace, runs no servers, and polls often.
func testOptions(namespace string) options {
	options := defaultOptions()
	options.namespace = namespace
	options.MetricsBindAddress, options.HealthProbeBindAddress = lifecycle.Disabled, lifecycle.Disabled
	options.pollInterval, options.retryInterval, options.observeInterval = 25*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond
	options.consistencyWindow = time.Second
	options.firstRetry, options.outageThreshold = 5*time.Millisecond, 100*time.Millisecond
	options.cloud = cloudOptions{url: clouds.url(), qps: 1000, burst: 1000}
	return options
}
