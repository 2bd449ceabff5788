package testcluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// processIDs returns the IDs of the processes whose arguments mention a folder, except the watchdog's.
func processIDs(g Gomega, dir string) []int {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	g.Expect(err).NotTo(HaveOccurred())
	var ids []int
	for _, command := range commands {
		content, err := os.ReadFile(command)
		if err != nil || !strings.Contains(string(content), dir) || strings.Contains(string(content), "watchdog") {
			continue // it has exited, doesn't mention the folder, or is the watchdog
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		g.Expect(err).NotTo(HaveOccurred())
		ids = append(ids, id)
	}
	return ids
}

func TestStopLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	started := &Cluster{CRDs: []string{"testdata/crd"}}
	g.Expect(started.Start(t.Context())).To(Succeed())
	dir := started.dir
	g.Expect(processIDs(g, dir)).To(HaveLen(5))

	g.Expect(started.Stop()).To(Succeed())
	g.Eventually(func(g Gomega) { g.Expect(processIDs(g, dir)).To(BeEmpty()) }).WithTimeout(specTimeout).Should(Succeed())
	g.Expect(dir).NotTo(BeADirectory())
	g.Expect(started.Stop()).To(Succeed(), "stopping it again must do nothing")
}
