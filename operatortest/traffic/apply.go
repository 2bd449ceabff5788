package traffic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/operator-workshop/operatortest/internal/state"
)

// ReadBefore makes the Tap find out which server-side applies change nothing. Before each apply, except a dry run, it
// calls the function to read the object, and afterwards it compares the object with the reply. The operator's other
// requests don't wait for that.
//
// If someone else writes to the object in between, the reply contains that change, too. So the Tap ignores changes to
// the status, which others write as a subresource, unless the operator has applied the status. To make it ignore
// someone else's changes to the rest of the object, too, call [Tap.NoteOther].
func (t *Tap) ReadBefore(read func(context.Context, Request) (*unstructured.Unstructured, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = read
}

// NoteOther tells the Tap that someone other than the operator has written this version of an object. If they wrote it
// after the Tap read the object and before the reply to a server-side apply, the Tap compares the reply with this
// version, too.
func (t *Tap) NoteOther(object *unstructured.Unstructured) {
	other := seen(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.others = append(t.others, other)
	for _, request := range t.log {
		if request.apply != nil && !request.Unchanged {
			request.Unchanged = request.apply.isFrom(other)
		}
	}
}

// version is what the Tap remembers about a version of an object. It contains no copy, because objects may be large.
type version struct {
	uid    types.UID
	number string
	// content and withStatus are digests of what applied returns for an apply to the object itself, and for an apply to
	// its status.
	content, withStatus [sha256.Size]byte
}

// seen returns what the Tap remembers about an object.
func seen(object *unstructured.Unstructured) version {
	digest := func(subresource string) [sha256.Size]byte {
		text, _ := json.Marshal(applied(object, subresource)) // it was JSON before
		return sha256.Sum256(text)
	}
	return version{uid: object.GetUID(), number: object.GetResourceVersion(), content: digest(""), withStatus: digest("status")}
}

// apply is a server-side apply that has succeeded.
type apply struct {
	subresource string
	// before is the object as it was read before the apply, and after is the reply.
	before, after version
}

// isFrom reports whether the apply has changed nothing, if this version of the object was the one that the apply found.
// It returns false for versions older than the object as it was read, and for versions newer than the reply.
func (a *apply) isFrom(other version) bool {
	if other.uid != a.after.uid {
		return false
	}
	sinceRead, err := resourceversion.CompareResourceVersion(other.number, a.before.number)
	if err != nil || sinceRead < 0 {
		return false
	}
	untilReply, err := resourceversion.CompareResourceVersion(other.number, a.after.number)
	if err != nil || untilReply > 0 {
		return false
	}
	if a.subresource == "" {
		return untilReply == 0 || other.content == a.after.content
	}
	return untilReply == 0 || other.withStatus == a.after.withStatus
}

// send sends a request. If it is a server-side apply, send also notes whether it has changed nothing.
func (t *transport) send(entry *Request, request *http.Request) (*http.Response, error) {
	before := t.tap.readBefore(request.Context(), entry)
	response, err := t.next.RoundTrip(request)
	if err != nil || before == nil || response.StatusCode != http.StatusOK || !isJSON(response) {
		return response, err
	}
	content, failed := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(content), failing{failed}))
	after := &unstructured.Unstructured{}
	if failed == nil && after.UnmarshalJSON(content) == nil {
		t.tap.noteApply(entry, before, after)
	}
	return response, nil
}

// readBefore reads the object that a server-side apply will change. It returns nil for other requests, for dry runs,
// and if the object doesn't exist or the Tap can't read it.
func (t *Tap) readBefore(ctx context.Context, entry *Request) *unstructured.Unstructured {
	t.mu.Lock()
	read := t.read
	t.mu.Unlock()
	if read == nil || !entry.Applies || entry.DryRun {
		return nil
	}
	object, err := read(ctx, *entry)
	if err != nil {
		return nil
	}
	return object
}

func isJSON(response *http.Response) bool {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return media == runtime.ContentTypeJSON
}

// noteApply notes whether a server-side apply has changed nothing. before is the object as it was read before the
// apply, and after is the reply.
func (t *Tap) noteApply(entry *Request, before, after *unstructured.Unstructured) {
	noted := &apply{subresource: entry.Subresource, before: seen(before), after: seen(after)}
	t.mu.Lock()
	defer t.mu.Unlock()
	entry.apply, entry.Unchanged = noted, noted.isFrom(noted.before) || slices.ContainsFunc(t.others, noted.isFrom)
}

// applied returns an object as it is compared: without the resource version and the managed fields and, unless a
// subresource was applied, without the status and the annotation that is written together with it.
func applied(object *unstructured.Unstructured, subresource string) map[string]any {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	if subresource == "" {
		delete(object.Object, "status")
		// The Deployment controller writes this annotation together with the status.
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", state.RevisionAnnotation)
		if len(object.GetAnnotations()) == 0 {
			object.SetAnnotations(nil)
		}
	}
	return object.Object
}

// failing is the end of a body: the error with which reading it failed, or io.EOF.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
