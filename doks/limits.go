package doks

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// officialHourly is DigitalOcean's hourly limit. The emulator reports it if it has no hourly limit of its own.
const officialHourly = 5000

// limits counts the requests of each caller over the last hour, if there is a limit.
type limits struct {
	perMinute, perHour int

	mu     sync.Mutex
	recent map[string][]time.Time
}

func newLimits(options Options) *limits {
	return &limits{perMinute: options.RequestsPerMinute, perHour: options.RequestsPerHour, recent: map[string][]time.Time{}}
}

// budget is what remains of a caller's limit.
type budget struct {
	limit, remaining int
	reset            time.Time
	exceeded         bool
	// retryAfter is set only if the per-minute limit is exceeded: a client that exceeds the hourly limit gets no
	// Retry-After header.
	retryAfter time.Duration
}

// count deducts a request from the caller's budget, unless there is no limit or the request exceeds one, and returns
// the budget.
func (l *limits) count(name string, now time.Time) budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := slices.DeleteFunc(l.recent[name], func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	left := l.examine(recent, now)
	if !left.exceeded && (l.perHour > 0 || l.perMinute > 0) {
		recent = append(recent, now)
		left.remaining = max(left.remaining-1, 0)
	}
	l.recent[name] = recent
	if len(recent) > 0 {
		left.reset = recent[0].Add(time.Hour)
	}
	return left
}

func (l *limits) examine(recent []time.Time, now time.Time) budget {
	left := budget{limit: l.perHour, remaining: l.perHour - len(recent), reset: now}
	if l.perHour == 0 {
		left.limit, left.remaining = officialHourly, max(officialHourly-len(recent), 0)
	}
	if l.perHour > 0 && len(recent) >= l.perHour {
		left.exceeded = true
		return left
	}
	if l.perMinute > 0 && len(recent) >= l.perMinute {
		// There is room for another request once this one is a minute old.
		oldest := recent[len(recent)-l.perMinute]
		if wait := oldest.Add(time.Minute).Sub(now); wait > 0 {
			left.exceeded, left.retryAfter = true, wait
		}
	}
	return left
}

// set writes the budget's headers, which every reply of the API under /v2 has.
func (b budget) set(header http.Header) {
	header.Set("ratelimit-limit", strconv.Itoa(b.limit))
	header.Set("ratelimit-remaining", strconv.Itoa(b.remaining))
	header.Set("ratelimit-reset", strconv.FormatInt(b.reset.Unix(), 10))
}

// seconds returns the duration in seconds, rounded up, so that a client that waits that long does not retry too early.
func seconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}
