package testcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/controlplane"
)

func TestStartWithoutTools(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(controlplane.AssetsVariable, t.TempDir())
	cluster := &Cluster{}
	err := cluster.Start(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("etcd is missing")))
	g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
}

func TestStartOnAnExistingClusterNeedsAKubeconfig(t *testing.T) {
	t.Setenv(ExistingVariable, "true")
	cases := map[string]struct{ kubeconfig, want string }{
		"no kubeconfig is named":  {"", "USE_EXISTING_CLUSTER=true needs KUBECONFIG to name the cluster's kubeconfig"},
		"the file does not exist": {"testdata/absent", "KUBECONFIG=testdata/absent names no kubeconfig: correct the path, or bring up a cluster first"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(KubeconfigVariable, c.kubeconfig)
			g.Expect((&Cluster{}).Start(t.Context())).To(MatchError("start the test cluster: " + c.want))
		})
	}
}
