package testcluster

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// specTimeout bounds most specs; the one that starts several clusters may take twice as long.
const specTimeout = 30 * time.Second

var cluster = &Cluster{
	CRDs:     []string{"testdata/crd"},
	Webhooks: []string{"testdata/webhooks"},
	Stages:   []string{"testdata/stages/stuck.yaml"},
}

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	RunSpecs(t, "testcluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})
