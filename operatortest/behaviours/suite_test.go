package behaviours

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/operatortest/testcluster"
)

// roleVariable is the environment variable that selects the specs that the test binary runs. Tests set the variable
// when they start the binary again, to see how the selected specs end.
const (
	roleVariable = "OPERATORTEST_ROLE"
	roleBroken   = "broken"
	roleReported = "reported"
)

// specTimeout bounds the quick specs.
const specTimeout = 30 * time.Second

var cluster = &testcluster.Cluster{
	CRDs:   []string{"testdata/crd", "testdata/gadget/gadgets.yaml", "testdata/depot/depots.yaml", "testdata/server/servers.yaml"},
	Stages: []string{"testdata/slow-pods.yaml"},
}

func TestOperatortest(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	switch role := os.Getenv(roleVariable); role {
	case roleBroken:
		cluster.CRDs, cluster.Webhooks = []string{"testdata/broken/crd"}, nil
		suite.LabelFilter = role
	case roleReported:
		cluster.CRDs = []string{"testdata/gadget/gadgets.yaml"}
		suite.LabelFilter = role + " && " + drift.name
	default:
		suite.LabelFilter = "!" + roleBroken + " && !" + roleReported
	}
	RunSpecs(t, "operatortest", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(func() error { return cluster.Stop() })
	began := time.Now()
	Expect(cluster.Start(ctx)).To(Succeed())
	// Starting the cluster takes about three seconds on an idle machine. If it takes longer, operators are slower, too.
	catchTimeout = max(catchTimeout, 3*time.Since(began)/2)
})

// actor returns the command that runs the test binary again, in a role.
func actor(ctx context.Context, role string, env ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestOperatortest$", "-test.count=1", "-ginkgo.no-color")
	command.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	return command
}
