package logs

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// fakeKubectl answers for a cluster with one CustomResourceDefinition and two pods, one of which was restarted. It
// fails when asked for events.
const fakeKubectl = `#!/bin/sh
case "$*" in
"get customresourcedefinitions"*) echo foos.example.com ;;
"get pods"*) echo "shop/web-1 shop/web-2/restarted" ;;
"get events"*) echo "forbidden" >&2; exit 1 ;;
*) echo "answer to: $*" ;;
esac
`

func TestCollectWritesAllThatItGets(t *testing.T) {
	g := NewWithT(t)
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	g.Expect(os.WriteFile(kubectl, []byte(fakeKubectl), 0o755)).To(Succeed())
	dir := t.TempDir()

	err := Collect(t.Context(), kubectl, os.Environ(), dir)

	g.Expect(err).To(MatchError(HavePrefix("kubectl get events")), "what can't be read must be reported")
	content := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	g.Expect(content("events")).To(Equal("forbidden\n"))
	g.Expect(content("resources/foos.example.com")).To(ContainSubstring("get foos.example.com --all-namespaces"))
	g.Expect(content("pods/shop_web-1")).To(ContainSubstring("describe pod web-1 --namespace=shop"))
	g.Expect(content("pods/shop_web-2.previous.log")).To(ContainSubstring("--previous"))
	g.Expect(filepath.Join(dir, "pods/shop_web-1.previous.log")).NotTo(BeAnExistingFile(), "a pod that was never restarted must have no previous log")
}
