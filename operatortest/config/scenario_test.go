package config_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/config"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// scenarioTimeout bounds each wait for an operator.
const scenarioTimeout = time.Minute

// version returns a version of the shell example. The versions differ in the pause between rounds, in seconds.
func version(t *testing.T, pause string) operatortest.Operator {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "shell")
	g.Expect(os.CopyFS(dir, os.DirFS("../examples/shell"))).To(Succeed())
	script := filepath.Join(dir, "greeter.sh")
	content, err := os.ReadFile(script)
	g.Expect(err).NotTo(HaveOccurred())
	changed := strings.Replace(string(content), "sleep 0.5", "sleep "+pause, 1)
	g.Expect(os.WriteFile(script, []byte(changed), 0o700)).To(Succeed())
	operator, err := config.Load(filepath.Join(dir, "operatortest.yaml"), "")
	g.Expect(err).NotTo(HaveOccurred())
	return operator
}

// start runs an operator in a namespace until stop is called. The tap records the operator's requests.
func start(t *testing.T, cluster *testcluster.Cluster, operator operatortest.Operator, namespace string) (tap *traffic.Tap, stop func()) {
	t.Helper()
	tap = traffic.New()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, tap.Config(cluster.Config), operatortest.RunOptions{Namespace: namespace})
	}()
	return tap, func() {
		t.Helper()
		cancel()
		NewWithT(t).Expect(<-ended).To(Succeed())
	}
}

// TestAnUpgradeLeavesFinishedWorkAlone stops an operator and starts its next version, as a Deployment with the strategy
// Recreate does. If nothing has to change, the new version must not write.
func TestAnUpgradeLeavesFinishedWorkAlone(t *testing.T) {
	g := NewWithT(t)
	assets, err := controlplane.FindAssets()
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv("PATH", assets+string(os.PathListSeparator)+os.Getenv("PATH")) // the example needs kubectl
	before, after := version(t, "0.5"), version(t, "0.2")
	cluster := &testcluster.Cluster{CRDs: before.CRDs}
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	g.Expect(cluster.Start(t.Context())).To(Succeed())
	namespace, err := cluster.CreateNamespace(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.com/v1", "kind": "Greeting",
		"metadata": map[string]any{"namespace": namespace.Name, "name": "ada"},
		"spec":     map[string]any{"text": "Hello"},
	}}
	g.Expect(cluster.Client.Create(t.Context(), greeting)).To(Succeed())

	_, stop := start(t, cluster, before, namespace.Name)
	g.Eventually(func() error {
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(greeting), greeting); err != nil {
			return err
		}
		return before.Converged(greeting)
	}).WithTimeout(scenarioTimeout).Should(Succeed())
	stop()

	tap, stop := start(t, cluster, after, namespace.Name)
	g.Eventually(func() (lists int) {
		for _, request := range tap.Requests() {
			if request.Verb == "list" && request.Resource == "greetings" && request.Status == http.StatusOK {
				lists++
			}
		}
		return lists
	}).WithTimeout(scenarioTimeout).Should(BeNumerically(">", 2), "the new version must look at the Greeting")
	stop()
	g.Expect(tap.Requests()).NotTo(ContainElement(HaveField("IsWrite()", BeTrue())))
}
