package operatortest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("an operator counts as done", func() {
	looks := int(quiet / pollInterval)
	done, inFlight := traffic.Request{Done: true}, traffic.Request{}

	// looksUntilCalm is after how many looks it does, and more than it takes if it does not.
	looksUntilCalm := func(calm *calm, requests ...traffic.Request) int {
		for i := range 3 * looks {
			if calm.look(requests) {
				return i + 1
			}
		}
		return 3 * looks
	}

	It("after as many looks without a new request", func() {
		var calm calm
		Expect(looksUntilCalm(&calm, done)).To(Equal(looks + 1))
		Expect(looksUntilCalm(&calm, done, done)).To(Equal(looks+1), "a request starts the count anew")
	})

	It("not while a request is in flight", func() {
		var calm calm
		Expect(looksUntilCalm(&calm, inFlight, done)).To(Equal(3 * looks))
	})
})
