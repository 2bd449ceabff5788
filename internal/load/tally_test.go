package load

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/traffic"
)

func made(verb, group, resource string, status int) request {
	return request{Request: traffic.Request{Verb: verb, Group: group, Resource: resource, Status: status}}
}

func TestCount(t *testing.T) {
	for name, test := range map[string]struct {
		request request
		wanted  tally
	}{
		"a create is a write":                   {request: made("create", "apps", "deployments", 201), wanted: tally{writes: 1}},
		"a delete is a write":                   {request: made("delete", "apps", "deployments", 200), wanted: tally{writes: 1}},
		"a refused write is also a write":       {request: made("patch", "example.com", "foos", 409), wanted: tally{writes: 1, conflicts: 1}},
		"a forbidden request is refused":        {request: made("list", "apps", "deployments", 403), wanted: tally{reads: 1, refusals: 1}},
		"a list is a read":                      {request: made("list", "apps", "deployments", 200), wanted: tally{reads: 1}},
		"discovery is a read":                   {request: made("get", "", "", 200), wanted: tally{reads: 1}},
		"a review counts as a read":             {request: made("create", "authorization.k8s.io", "subjectaccessreviews", 201), wanted: tally{reads: 1}},
		"a watch is a watch":                    {request: made("watch", "apps", "deployments", 200), wanted: tally{watches: 1}},
		"an event does not count as a write":    {request: made("create", "events.k8s.io", "events", 201), wanted: tally{events: 1}},
		"an event of the old group is an event": {request: made("patch", "", "events", 200), wanted: tally{events: 1}},
		"a lease does not count as a write":     {request: made("update", "coordination.k8s.io", "leases", 200), wanted: tally{leases: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			test.wanted.kinds = map[string]int{test.request.Kind(): 1}
			NewWithT(t).Expect(count([]request{test.request})).To(Equal(test.wanted), "see class in tally.go")
		})
	}
}

func TestCountAddsUp(t *testing.T) {
	g := NewWithT(t)
	patch := made("patch", "example.com", "foos", 200)
	g.Expect(count([]request{patch, patch, patch})).To(Equal(tally{writes: 3, kinds: map[string]int{"patch foos.example.com": 3}}))
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Second) // from the longest to the shortest
	}
	for name, test := range map[string]struct {
		durations []time.Duration
		percent   float64
		wanted    time.Duration
	}{
		"no durations":                    {percent: 50, wanted: 0},
		"the only one":                    {durations: []time.Duration{time.Second}, percent: 99, wanted: time.Second},
		"half of two":                     {durations: []time.Duration{2 * time.Second, time.Second}, percent: 50, wanted: time.Second},
		"half of a hundred":               {durations: hundred, percent: 50, wanted: 50 * time.Second},
		"all but the longest":             {durations: hundred, percent: 99, wanted: 99 * time.Second},
		"all":                             {durations: hundred, percent: 100, wanted: 100 * time.Second},
		"zero percent":                    {durations: hundred, percent: 0, wanted: time.Second},
		"the slowest of a few is the p99": {durations: hundred[:10], percent: 99, wanted: 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(percentile(test.durations, test.percent)).To(Equal(test.wanted))
		})
	}
}
