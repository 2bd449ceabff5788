package controller_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("a lasting conflict", func() {
	It("is counted as an error, and retried with backoff", func(ctx SpecContext) {
		const tries, lastPause = 9, 600 * time.Millisecond // the queue waits 5 ms at first, and doubles the pause each time
		namespace, tap := cluster.Namespace(ctx), traffic.New()
		tap.SetRule(func(request traffic.Request) traffic.Action {
			if isStatusPatch(request) {
				return traffic.Action{Answer: &traffic.Answer{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}}
			}
			return traffic.Action{}
		})
		counted := count(reconcileErrors)
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		password := newPassword(namespace, "contested")
		create(ctx, password)
		var tried []time.Duration
		eventually(ctx, func(g Gomega) {
			tried = nil
			for _, request := range tap.Requests() {
				if isStatusPatch(request) {
					tried = append(tried, request.At)
				}
			}
			g.Expect(len(tried)).To(BeNumerically(">=", tries))
		})
		Expect(tried[tries-1]-tried[tries-2]).To(BeNumerically(">=", lastPause), "Reconcile should return the error, so that the queue retries with backoff: see Reconcile in password_controller.go")
		Expect(count(reconcileErrors)-counted).To(BeNumerically(">=", tries-1), "the metrics must count the errors")

		tap.SetRule(nil)
		expectReady(ctx, password)
	}, SpecTimeout(specTimeout))
})

func isStatusPatch(request traffic.Request) bool {
	return request.Verb == "patch" && request.Resource == "passwords" && request.Subresource == "status"
}
