package load

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// tally counts requests by class. A request that failed also counts as a conflict or a refusal. Requests about events and
// leases count neither as writes nor as reads.
type tally struct {
	writes, reads, watches, events, leases int
	// conflicts counts the requests that were answered with the status 409; refusals counts those that were answered with
	// any other status of 400 or above.
	conflicts, refusals int
	// kinds counts the requests by kind, such as "patch foos.example.com/status". See traffic.Request.Kind.
	kinds map[string]int
}

func count(requests []request) tally {
	counted := tally{kinds: map[string]int{}}
	for _, each := range requests {
		counted.kinds[each.Kind()]++
		*counted.class(each)++
		switch {
		case each.Status == http.StatusConflict:
			counted.conflicts++
		case each.Status >= http.StatusBadRequest:
			counted.refusals++
		}
	}
	return counted
}

func (t *tally) class(each request) *int {
	switch {
	case each.Verb == "watch":
		return &t.watches
	case each.IsLease():
		return &t.leases
	case each.IsEvent():
		return &t.events
	case each.IsWrite():
		return &t.writes
	}
	return &t.reads
}

// percentile returns the smallest duration that this percentage of the durations does not exceed. If there are no
// durations, it returns 0.
func percentile(durations []time.Duration, percent float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// mean returns the mean of the durations, in seconds.
func mean(durations []time.Duration) float64 {
	var sum time.Duration
	for _, each := range durations {
		sum += each
	}
	return sum.Seconds() / float64(len(durations))
}
