package procgroup

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestUsageOfCountsTheWholeGroup(t *testing.T) {
	g := NewWithT(t)
	if stats, _ := filepath.Glob("/proc/self/stat"); len(stats) == 0 {
		t.Skip("this machine has no /proc")
	}
	one := exec.Command("sleep", "1000")
	three := exec.Command("sh", "-c", "sleep 1000 & exec 5</dev/null; sleep 1000 & wait")
	usages := map[*exec.Cmd]func() (Usage, error){}
	for _, command := range []*exec.Cmd{one, three} {
		Isolate(command)
		g.Expect(command.Start()).To(Succeed())
		defer func() {
			End(command.Process.Pid)
			_ = command.Wait()
		}()
		usages[command] = func() (Usage, error) { return UsageOf(command.Process.Pid) }
	}
	g.Eventually(usages[one]).WithTimeout(10 * time.Second).Should(And(HaveField("Threads", 1), HaveField("Memory", BeNumerically(">", 0))))
	g.Eventually(usages[three]).WithTimeout(10 * time.Second).Should(HaveField("Threads", 3))
	single, err := usages[one]()
	g.Expect(err).NotTo(HaveOccurred())
	all, err := usages[three]()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all.Files).To(Equal(3*single.Files+2), "the shell and its second child have one more file each")
	g.Expect(all.Memory).To(BeNumerically(">", single.Memory))
}
