package doks

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Entry is what the journal says about one request.
type Entry struct {
	// Number counts the requests from 1, in the order of their arrival.
	Number int `json:"number"`
	// Time is when the request arrived, by the emulator's clock.
	Time time.Time `json:"time"`
	// Token is the name of the token: token-1, read-only-1, cluster-1 and so on in the order of the options, "none" if
	// the request has no token, "unknown" if the token is not known.
	Token  string `json:"token"`
	Method string `json:"method"`
	// Path is the URL's path with its query. Each of the emulator's tokens in it is replaced by [token].
	Path string `json:"path"`
	// Operation is what was requested, such as "create cluster", or "unknown".
	Operation string `json:"operation"`
	// ClusterID and ClusterName identify the cluster that the request is about, as far as they are known.
	ClusterID   string `json:"cluster_id,omitempty"`
	ClusterName string `json:"cluster_name,omitempty"`
	// Status is the HTTP status of the reply, even if the reply did not arrive. It is 0 if there is no reply.
	Status int `json:"status"`
	// Effective means that the request changed something.
	Effective bool `json:"effective"`
	// Note says which fault or interruption hit the request, and whether the client gave up during a fault's delay.
	Note string `json:"note,omitempty"`
	// Done means that the request has been handled.
	Done bool `json:"done"`
}

// String returns the entry as a log line.
func (e Entry) String() string {
	line := fmt.Sprintf("%d %s %s: %d", e.Number, e.Method, e.Path, e.Status)
	if e.Effective {
		line += ", took effect"
	}
	if e.Note != "" {
		line += ", " + e.Note
	}
	return line
}

// journal is the list of the requests since it was last cleared.
type journal struct {
	mu      sync.Mutex
	count   int
	entries []*Entry
}

func (j *journal) open(entry Entry) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	entry.Number = j.count
	j.entries = append(j.entries, &entry)
	return &entry
}

// change edits an entry while the journal is locked.
func (j *journal) change(entry *Entry, edit func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	edit(entry)
}

func (j *journal) read() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := make([]Entry, len(j.entries))
	for i, entry := range j.entries {
		entries[i] = *entry
	}
	return entries
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = nil
}

// Journal returns all requests to the API since the journal was last cleared, in the order of their arrival.
func (e *Emulator) Journal() []Entry { return e.journal.read() }

// ClearJournal empties the journal. The numbering continues.
func (e *Emulator) ClearJournal() { e.journal.clear() }

// Effective returns the entries of an operation, such as "create cluster", that took effect.
func (e *Emulator) Effective(operation string) []Entry {
	return slices.DeleteFunc(e.Journal(), func(entry Entry) bool {
		return entry.Operation != operation || !entry.Effective
	})
}
