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

// Flaws that show when an operator dies, requests fail, or caches are out of date.
const (
	namesAnew     mutation = "gives its ConfigMap a random name, and writes that down afterwards"
	marksFirst    mutation = "takes its finalizer for a proof that the parcel is stored"
	letsGoFirst   mutation = "takes its finalizer off before it removes the parcel"
	remembersName mutation = "keeps in memory which ConfigMap it has made"

	swallows       mutation = "logs an error, and does not try again"
	conflictIsFine mutation = "takes a conflict for a success"
	endsOnError    mutation = "ends when a write fails"
	endsWithWatch  mutation = "ends when a watch breaks"
	endsAtStart    mutation = "ends when a read fails before the first write, which is allowed"

	ordersAnew       mutation = "orders a parcel as long as it does not see that it has one"
	picksAnotherName mutation = "gives its ConfigMap another name if the first is taken"
	overwritesOld    mutation = "sends the whole ConfigMap as it knows it, without its resourceVersion"
	knowsByName      mutation = "knows a gadget by its name and generation"
	claimsNewest     mutation = "writes the newest generation into the status, whichever spec it acted on"
	patchesByName    mutation = "patches whatever ConfigMap has the name"
)

var _ = Describe("the test kit", func() {
	catches("can't be killed at any time",
		mutant{crash, namesAnew, "ConfigMap/generated (2)"},
		mutant{crash, marksFirst, "outside Kubernetes"},
		mutant{crash, letsGoFirst, "left behind"},
		mutant{crash, remembersName, "ConfigMap/settings"},
	)

	catches("can't stand failing requests",
		mutant{faults, swallows, "expected Gadget gadget to converge"},
		mutant{faults, conflictIsFine, "while others write at the same time (409 Conflict):"},
		mutant{faults, namesAnew, "while requests take effect, but their replies get lost:"},
		mutant{faults, endsOnError, "ended on its own"},
		mutant{faults, endsWithWatch, "ended on its own"},
	)
})

var _ = pooledIt("an operator that ends before its first write is started again", func(ctx context.Context, g Gomega) {
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
var _ = pooledIt("catches an operator that trusts its caches too much behind a slow API server", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, mutant{flaw: ordersAnew}.operator(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	slow := rest.CopyConfig(cluster.Config)
	slow.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowWrites{next} })
	runner.Cluster = &testcluster.Cluster{Config: slow, Admin: cluster.Admin, Existing: cluster.Existing}
	g.Expect(tryReportIn(ctx, runner, stale, "the operator does not see its own writes to the resource:")).To(Succeed())
})

// slowWrites connects to an API server whose writes take longer than the kit waits to see whether an operator is at
// rest.
type slowWrites struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s slowWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		<-time.After(2 * trial.Quiet)
	}
	return s.next.RoundTrip(request)
}
