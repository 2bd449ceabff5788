package behaviours

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/testcluster"
)

// Flaws that show when an operator dies, requests fail, or caches are out of date. All but endsAtStart are flaws.
const (
	namesAnew     mutation = "gives its ConfigMap a random name, and records the name afterwards"
	marksFirst    mutation = "takes its finalizer as proof that the parcel is stored"
	letsGoFirst   mutation = "removes its finalizer before it removes the parcel"
	remembersName mutation = "remembers in memory which ConfigMap it has created"

	swallows       mutation = "ignores every error, and does not retry"
	conflictIsFine mutation = "treats a conflict as a success"
	endsOnError    mutation = "exits when a write fails"
	endsWithWatch  mutation = "exits when a watch breaks"
	endsAtStart    mutation = "exits when a read fails before the first write, which is allowed"

	ordersAnew       mutation = "orders a parcel in every reconcile until it sees that it has one"
	picksAnotherName mutation = "gives its ConfigMap another name if the first is taken"
	overwritesOld    mutation = "sends the whole ConfigMap from its cache, without the resourceVersion"
	knowsByName      mutation = "identifies a gadget by its name and generation"
	claimsNewest     mutation = "writes the newest generation to the status, whichever spec it acted on"
	patchesByName    mutation = "patches any ConfigMap with the right name"
)

var _ = Describe("the test kit", func() {
	catches("doesn't recover from a kill",
		mutant{crash, namesAnew, "ConfigMap/generated (2)"},
		mutant{crash, marksFirst, "outside Kubernetes"},
		mutant{crash, letsGoFirst, "left behind"},
		mutant{crash, remembersName, "ConfigMap/settings"},
	)

	catches("can't cope with failing requests",
		mutant{faults, swallows, "expected Gadget gadget to converge"},
		mutant{faults, conflictIsFine, "while others write at the same time (409 Conflict):"},
		mutant{faults, namesAnew, "while requests take effect, but their replies get lost:"},
		mutant{faults, endsOnError, "exited on its own"},
		mutant{faults, endsWithWatch, "exited on its own"},
	)
})

var _ = pooledIt("restarts an operator that exits before its first write", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(endsAtStart), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(faults.try(ctx, runner)).To(Succeed())
})

var _ = Describe("the test kit", func() {
	catches("trusts its caches too much",
		mutant{stale, ordersAnew, "the operator does not see its own writes to the resource:"},
		mutant{stale, picksAnotherName, "ConfigMap/settings-2"},
		mutant{stale, overwritesOld, "others wrote to the children, and the operator sees only that the spec has changed:"},
		mutant{stale, knowsByName, "expected Gadget gadget to converge"},
		mutant{stale, claimsNewest, "expected the status not to say that the new spec is met before it is"},
		mutant{stale, patchesByName, "expected the operator to leave ConfigMap settings alone"},
	)
})

// The API server may be so busy that a flaw shows only long after the kit has provoked it.
var _ = pooledIt("catches an operator that trusts its caches too much, even if the API server is slow", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, mutant{flaw: ordersAnew}.operator(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	slow := rest.CopyConfig(cluster.Config)
	slow.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowWrites{next} })
	runner.Cluster = &testcluster.Cluster{Config: slow, Admin: cluster.Admin, Existing: cluster.Existing}
	g.Expect(tryReportIn(ctx, runner, stale, "the operator does not see its own writes to the resource:")).To(Succeed())
})

// slowWrites delays each write by more than the time after which the kit considers a silent operator to be at rest.
type slowWrites struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s slowWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		<-time.After(2 * trial.Quiet)
	}
	return s.next.RoundTrip(request)
}
