package load

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// tally counts requests by what they are. Refused ones count as conflicts or
// refusals too. Events and leases are nothing but that.
type tally struct {
	writes, reads, watches, events, leases int
	// conflicts got the status 409, refusals any other from 400 on.
	conflicts, refusals int
	// kinds counts by verb and resource, such as "patch foos.example.com/status".
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

// class is the number that a request belongs to.
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

// percentile is the smallest duration that so many percent of all do not exceed; 0 of none.
func percentile(durations []time.Duration, percent float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// mean is the average of durations, in seconds.
func mean(durations []time.Duration) float64 {
	var sum time.Duration
	for _, each := range durations {
		sum += each
	}
	return sum.Seconds() / float64(len(durations))
}
