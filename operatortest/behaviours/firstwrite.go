package behaviours

import (
	"fmt"
	"sync"

	"example.com/operator-workshop/operatortest/traffic"
)

// heldWrite holds the first write that its rule receives, not counting Events and Leases, until release is closed.
type heldWrite struct {
	release, begun chan struct{}
	once           sync.Once
}

func holdFirstWrite() *heldWrite {
	return &heldWrite{release: make(chan struct{}), begun: make(chan struct{})}
}

func (w *heldWrite) rule(request traffic.Request) traffic.Action {
	action := traffic.Action{}
	if request.IsWrite() && !request.IsEvent() && !request.IsLease() {
		w.once.Do(func() {
			close(w.begun)
			action.Hold = w.release
		})
	}
	return action
}

func (w *heldWrite) reached() error {
	select {
	case <-w.begun:
		return nil
	default:
		return fmt.Errorf("it has not tried to write anything")
	}
}
