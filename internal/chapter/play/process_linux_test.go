package play

import (
	"os/exec"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// The test needs /proc, so this file is compiled only on Linux.
func TestAGroupOfDeadProcessesDoesNotLive(t *testing.T) {
	g := NewWithT(t)
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g.Expect(cmd.Start()).To(Succeed())
	p := &process{cmd: cmd}
	g.Expect(p.groupLives()).To(BeTrue())
	g.Expect(cmd.Process.Kill()).To(Succeed())
	// The killed process stays in the process table, as a zombie, until the Wait below.
	g.Eventually(p.groupLives, "5s", "5ms").Should(BeFalse())
	g.Expect(syscall.Kill(-cmd.Process.Pid, 0)).To(Succeed())
	g.Expect(cmd.Wait()).NotTo(Succeed())
}
