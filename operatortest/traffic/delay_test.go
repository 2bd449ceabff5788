package traffic

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestADelayedRequestArrives(t *testing.T) {
	tests := map[string]func(tap *Tap, giveUp func()){
		"although the operator cancelled it": func(_ *Tap, giveUp func()) { giveUp() },
		"although the operator is dead":      func(tap *Tap, _ func()) { tap.Kill() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			g, server, tap := NewWithT(t), newServer(t), New()
			clients := newClient(g, tap, server.config)
			arrive := make(chan struct{})
			tap.SetRule(func(Request) Action { return Action{Delay: arrive} })
			ctx, giveUp := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- create(ctx, clients) }()
			g.Eventually(tap.Requests).WithTimeout(waitTimeout).Should(HaveLen(1))

			end(tap, giveUp)

			g.Eventually(result).WithTimeout(waitTimeout).Should(Receive(HaveOccurred()))
			g.Expect(server.received.Load()).To(BeZero())
			g.Expect(tap.Requests()[0].Done).To(BeFalse(), "the request must still be in flight")
			close(arrive)
			g.Eventually(tap.Requests).WithTimeout(waitTimeout).Should(HaveExactElements(And(HaveField("Done", true), HaveField("Status", http.StatusOK))))
			g.Expect(server.received.Load()).To(BeEquivalentTo(1))
		})
	}
}

func TestADelayedRequestIsAnswered(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	clients := newClient(g, tap, server.config)
	arrive := make(chan struct{})
	tap.SetRule(func(Request) Action { return Action{Delay: arrive} })
	close(arrive)
	g.Expect(create(t.Context(), clients)).To(Succeed())
}
