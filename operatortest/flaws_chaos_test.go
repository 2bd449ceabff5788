package operatortest

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// Flaws that show when an operator dies, requests fail, or caches are out of date.
const (
	namesAnew     flaw = "gives its ConfigMap a random name, and writes that down afterwards"
	marksFirst    flaw = "takes its finalizer for a proof that the parcel is stored"
	letsGoFirst   flaw = "takes its finalizer off before it removes the parcel"
	remembersName flaw = "keeps in memory which ConfigMap it has made"

	swallows       flaw = "logs an error, and does not try again"
	conflictIsFine flaw = "takes a conflict for a success"
	endsOnError    flaw = "ends when a write fails"
	endsWithWatch  flaw = "ends when a watch breaks"
	endsAtStart    flaw = "ends when a read fails before the first write, which is allowed"

	ordersAnew       flaw = "orders a parcel as long as it does not see that it has one"
	picksAnotherName flaw = "gives its ConfigMap another name if the first is taken"
	overwritesOld    flaw = "sends the whole ConfigMap as it knows it, without its resourceVersion"
	knowsByName      flaw = "knows a gadget by its name and generation"
	claimsNewest     flaw = "writes the newest generation into the status, whichever spec it acted on"
	patchesByName    flaw = "patches whatever ConfigMap has the name"
)

var _ = Describe("the test kit", func() {
	catches("can't be killed at any time",
		broken{crash, namesAnew, "ConfigMap/generated (2)"},
		broken{crash, marksFirst, "outside Kubernetes"},
		broken{crash, letsGoFirst, "left behind"},
		broken{crash, remembersName, "ConfigMap/settings"},
	)

	catches("can't stand failing requests",
		broken{faults, swallows, "expected Gadget gadget to converge"},
		broken{faults, conflictIsFine, "while others write at the same time (409 Conflict):"},
		broken{faults, namesAnew, "while requests take effect, but their replies get lost:"},
		broken{faults, endsOnError, "ended on its own"},
		broken{faults, endsWithWatch, "ended on its own"},
	)
})

var _ = It("an operator that ends before its first write is started again", func(ctx SpecContext) {
	lab, err := newLab(ctx, gadgetOperator(endsAtStart), cluster)
	Expect(err).NotTo(HaveOccurred())
	Expect(faults.try(ctx, lab)).To(Succeed())
})

var _ = Describe("the test kit", func() {
	catches("trusts its caches too much",
		broken{stale, ordersAnew, "the operator does not see its own writes to the resource:"},
		broken{stale, picksAnotherName, "ConfigMap/settings-2"},
		broken{stale, overwritesOld, "others wrote to the children, and the operator sees only that the spec has changed:"},
		broken{stale, knowsByName, "expected Gadget gadget to converge"},
		broken{stale, claimsNewest, "expected the status not to say that the new spec is met before it is"},
		broken{stale, patchesByName, "expected the operator to leave ConfigMap settings alone"},
	)
})

// The API server may be so busy that a flaw shows long after the kit has caused it.
var _ = It("catches an operator that trusts its caches too much behind a slow API server", func(ctx SpecContext) {
	lab, err := newLab(ctx, broken{flaw: ordersAnew}.operator(), cluster)
	Expect(err).NotTo(HaveOccurred())
	slow := rest.CopyConfig(cluster.Config)
	slow.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowWrites{next} })
	lab.cluster = &Cluster{Config: slow, admin: cluster.admin, shared: cluster.shared}
	Expect(tryReportIn(ctx, lab, stale, "the operator does not see its own writes to the resource:")).To(Succeed())
})

// slowWrites is the way to an API server that takes longer for a write than a done operator is quiet.
type slowWrites struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s slowWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		<-time.After(2 * quiet)
	}
	return s.next.RoundTrip(request)
}
