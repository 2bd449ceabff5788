package bench

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
)

func TestMemoryIsTheShareOfAProcess(t *testing.T) {
	g := NewWithT(t)
	share, err := parseShare("5581-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  2048 kB\nPss:                1024 kB\nPss_Dirty:   1 kB\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(share).To(Equal(uint64(1 << 20)))
	_, err = parseShare("Rss: 2048 kB\n")
	g.Expect(err).To(HaveOccurred())
	own, err := memory(classroom.Component{Name: "this test", PID: os.Getpid()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(own).To(BeNumerically(">", 1<<20))
}
