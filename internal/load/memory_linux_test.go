package load

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParsePeak(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parsePeak("Name:\tmanager\nVmPeak:\t 1266880 kB\nVmHWM:\t   38000 kB\nVmRSS:\t 37000 kB\n")).To(Equal(int64(38000 * 1024)))
	_, err := parsePeak("Name:\tmanager\n")
	g.Expect(err).To(MatchError(ContainSubstring("VmHWM")))
}

func TestPeakWhileRunning(t *testing.T) {
	peak, err := peakWhileRunning(os.Getpid())
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(peak).To(BeNumerically(">", 1e6), "the peak must be that of this test program, in bytes")
}
