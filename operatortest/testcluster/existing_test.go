package testcluster

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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
	incomplete := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["there"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthority: "/absent/ca.crt"}
	config.Contexts["there"], config.CurrentContext = &clientcmdapi.Context{Cluster: "there"}, "there"
	NewWithT(t).Expect(clientcmd.WriteToFile(*config, incomplete)).To(Succeed())
	cases := map[string]struct{ kubeconfig, want string }{
		"no kubeconfig is named":  {"", "USE_EXISTING_CLUSTER=true needs KUBECONFIG to name the cluster's kubeconfig"},
		"the file does not exist": {"testdata/absent", "KUBECONFIG=testdata/absent names no kubeconfig: correct the path, or bring up a cluster first"},
		"it names a missing file": {incomplete, "read the kubeconfig " + incomplete + ": invalid configuration: unable to read certificate-authority /absent/ca.crt for there due to open /absent/ca.crt: no such file or directory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(KubeconfigVariable, c.kubeconfig)
			g.Expect((&Cluster{}).Start(t.Context())).To(MatchError("start the test cluster: " + c.want))
		})
	}
}
