package traffic

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/operatortest/internal/state"
)

// ReadBefore makes the Tap find out which server-side applies change nothing. Before each of them, it calls the function
// to read the object, and afterwards it compares the object with the reply. Other requests of the operator don't wait
// for that.
//
// If someone else writes to the object in between, the reply contains that change, too. So the Tap ignores changes of
// the status, which others write as a subresource, unless the operator has applied the status. [Tap.NoteOther] makes
// it ignore other changes.
func (t *Tap) ReadBefore(read func(context.Context, Request) (*unstructured.Unstructured, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = read
}

// NoteOther tells the Tap that someone else has written a version of an object. A server-side apply whose reply contains
// that version has changed nothing, because a change would have made another version.
func (t *Tap) NoteOther(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.others[version] = struct{}{}
	for _, request := range t.log {
		if request.version == version {
			request.Unchanged = true
		}
	}
}

// send sends a request, and notes whether a server-side apply has changed nothing.
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

// readBefore returns the object to which a server-side apply will be sent. It returns nil for other requests, for
// an object that doesn't exist, and if the object can't be read.
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

// noteApply compares an object before a server-side apply with the reply to it.
func (t *Tap) noteApply(entry *Request, before, after *unstructured.Unstructured) {
	version := after.GetResourceVersion()
	isSame := before.GetResourceVersion() == version || reflect.DeepEqual(applied(before, entry.Subresource), applied(after, entry.Subresource))
	t.mu.Lock()
	defer t.mu.Unlock()
	_, isOther := t.others[version]
	entry.version, entry.Unchanged = version, isSame || isOther
}

// applied returns the parts of an object that a server-side apply may change, without the fields that only say who
// changed them.
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

// failing is the end of a body: the error with which reading it has failed, or io.EOF.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
