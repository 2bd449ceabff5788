package controlplane

import (
	"fmt"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// The errors are made up: root may listen on every port, so a test that runs as root can't provoke the first one, and
// provoking the second would use up file descriptors that other tests need.
func TestOnlyATakenPortIsCalledTaken(t *testing.T) {
	g := NewWithT(t)
	err := explainPort(443, fmt.Errorf("listen tcp 127.0.0.1:443: bind: %w", syscall.EACCES))
	g.Expect(err).To(MatchError("your user may not listen on port 443 (kube-apiserver): choose a port above 1023"))
	g.Expect(err).NotTo(MatchError(ErrPortTaken))
	err = explainPort(6443, fmt.Errorf("listen tcp 127.0.0.1:6443: socket: %w", syscall.EMFILE))
	g.Expect(err).To(MatchError("listen on port 6443 (kube-apiserver): listen tcp 127.0.0.1:6443: socket: too many open files"))
	g.Expect(err).NotTo(MatchError(ErrPortTaken))
}

func TestAFreePortIsOutsideTheRangeOfOutgoingConnections(t *testing.T) {
	g := NewWithT(t)
	port, err := FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(port).To(And(BeNumerically(">=", lowestPort), BeNumerically("<=", highestPort)), "a connection could take the port before a server listens on it")
}
