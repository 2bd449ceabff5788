package quote

import (
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAShellReadsTheSameArguments(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Args([]string{"get", "pods", "--namespace=a"})).To(Equal("get pods --namespace=a"))
	args := []string{"", "a b", "it's", `"$HOME" \`, "*", "a;b|c&d", "#", "~"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '[%s]' `+Args(args)).Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(`[][a b][it's]["$HOME" \][*][a;b|c&d][#][~]`))
}
