package traffic

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// past contains the arguments of [Tap.ShowPast].
type past struct {
	revision string
	match    func(Request) bool
}

// ShowPast makes the replies to matching lists and watches look as if the API server's watch cache lagged behind. When
// the returned function is called, the cache catches up. revision is a resource version at most 5 minutes old.
//
// A list that may come from a cache (resourceVersion=0) returns the objects as they were at the revision, and a watch
// from that revision shows later changes only after the cache has caught up. A list that requires current data gets
// current data. A watch that begins with all objects in place of a list would get current data, too. So the Tap refuses
// it, as a server without that feature does, and clients list instead.
//
// A client may encounter a cache that lags behind when it reconnects to a different one of several API servers:
// https://github.com/kubernetes/kubernetes/issues/59848.
func (t *Tap) ShowPast(revision string, match func(Request) bool) (catchUp func()) {
	release := t.Hold(match)
	t.setPast(&past{revision: revision, match: match})
	return func() {
		t.setPast(nil)
		release(Late)
	}
}

func (t *Tap) setPast(shown *past) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past = shown
}

// fromPast changes a list as ShowPast specifies, while the past is shown. For a watch that ShowPast refuses, it returns
// the answer to send; otherwise, it returns nil.
func (t *Tap) fromPast(request *http.Request, parsed *Request) *Answer {
	t.mu.Lock()
	shown := t.past
	t.mu.Unlock()
	if shown == nil || !shown.match(*parsed) {
		return nil
	}
	if parsed.Lists {
		return &Answer{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid}
	}
	query := request.URL.Query()
	if parsed.Verb != "list" || query.Get("resourceVersion") != "0" {
		return nil
	}
	query.Set("resourceVersion", shown.revision)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	request.URL.RawQuery = query.Encode()
	parsed.Past = shown.revision
	return nil
}
