package traffic

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// past is what [Tap.ShowPast] was called with.
type past struct {
	revision string
	match    func(Request) bool
}

// ShowPast has matching lists and watches answered as by an API server whose watch cache lags behind, until the returned
// function is called, from which on it catches up. revision is a resource version at most 5 minutes old.
//
// A list that may come from a cache (resourceVersion=0) shows the objects as they were at the revision, and a watch from there on
// shows what has become of them only after the end. A list that must be up to date is. A watch that begins with all objects in
// place of a list must be up to date, too; it is refused, as by a server without that feature, and clients list instead.
//
// A client meets such a server when it connects to another one of several:
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

// fromPast changes a list as ShowPast says, if it was called. It returns the answer in place of the API server's, nil for its own.
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
