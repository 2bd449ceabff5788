package traffic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// stored returns a Deployment as JSON.
func stored(version, metadata, content string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","resourceVersion":"` + version + `"` + metadata + `}` + content + `}`
}

func TestApplyThatChangesNothing(t *testing.T) {
	const one, two = `,"spec":{"replicas":1}`, `,"spec":{"replicas":2}`
	const idle, busy = `,"status":{"readyReplicas":0}`, `,"status":{"readyReplicas":1}`
	tests := map[string]struct {
		before, reply string
		// code is the status of the reply. Zero means 200.
		code int
		// others is an object that someone else has written, or empty.
		others      string
		subresource string
		how         types.PatchType
		want        bool
	}{
		"the version stays":                          {before: stored("7", "", one), reply: stored("7", "", one), want: true},
		"the spec changes":                           {before: stored("7", "", one), reply: stored("8", "", two)},
		"a label changes":                            {before: stored("7", "", one), reply: stored("8", `,"labels":{"a":"b"}`, one)},
		"someone else has changed the status":        {before: stored("7", "", one+idle), reply: stored("8", `,"managedFields":[{"manager":"them"}]`, one+busy), want: true},
		"the status that was applied changes":        {before: stored("7", "", one+idle), reply: stored("8", "", one+busy), subresource: "status"},
		"the Deployment controller has begun":        {before: stored("7", "", one), reply: stored("8", `,"annotations":{"deployment.kubernetes.io/revision":"1"}`, one+idle), want: true},
		"the reply has someone else's version":       {before: stored("7", "", one), reply: stored("9", `,"labels":{"a":"b"}`, one), others: stored("9", `,"labels":{"a":"b"}`, one), want: true},
		"the reply is later than that":               {before: stored("7", "", one), reply: stored("10", `,"labels":{"a":"b"}`, two), others: stored("9", `,"labels":{"a":"b"}`, one)},
		"only the status is later than that":         {before: stored("7", "", one), reply: stored("10", `,"labels":{"a":"b"}`, one+busy), others: stored("9", `,"labels":{"a":"b"}`, one+idle), want: true},
		"it restores a version from before the read": {before: stored("8", "", two), reply: stored("9", "", one), others: stored("7", "", one)},
		"others make the same change later":          {before: stored("7", "", one), reply: stored("8", "", two), others: stored("9", "", two)},
		"another object has that version":            {before: stored("7", "", one), reply: stored("9", "", two), others: stored("9", `,"uid":"else"`, two)},
		"the object is new":                          {reply: stored("7", "", one), code: http.StatusCreated},
		"the object can't be read":                   {reply: stored("7", "", one)},
		"the request is refused":                     {before: stored("7", "", one), reply: `{"kind":"Status","apiVersion":"v1"}`, code: http.StatusConflict},
		"it is another kind of patch":                {before: stored("7", "", one), reply: stored("7", "", one), how: types.MergePatchType},
	}
	for name, test := range tests {
		for _, when := range []string{"before", "after"} {
			t.Run(name+", and others' writes are noted "+when+" the reply", func(t *testing.T) {
				g, tap := NewWithT(t), New()
				server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
					reply.Header().Set("Content-Type", "application/json")
					reply.WriteHeader(max(test.code, http.StatusOK))
					_, _ = io.WriteString(reply, test.reply)
				}))
				t.Cleanup(server.Close)
				tap.ReadBefore(func(_ context.Context, request Request) (*unstructured.Unstructured, error) {
					g.Expect(request.Target()).To(Equal("here/web"))
					object := &unstructured.Unstructured{}
					return object, object.UnmarshalJSON([]byte(test.before))
				})
				note := func(now bool) {
					if now && test.others != "" {
						others := &unstructured.Unstructured{}
						g.Expect(others.UnmarshalJSON([]byte(test.others))).To(Succeed())
						tap.NoteOther(others)
					}
				}
				note(when == "before")
				how := test.how
				if how == "" {
					how = types.ApplyYAMLPatchType
				}
				clients := newClient(g, tap, &rest.Config{Host: server.URL, QPS: -1})
				var subresources []string
				if test.subresource != "" {
					subresources = append(subresources, test.subresource)
				}

				patched, err := clients.AppsV1().Deployments("here").Patch(t.Context(), "web", how, []byte("{}"), metav1.PatchOptions{FieldManager: "test"}, subresources...)
				note(when == "after")

				g.Expect(err != nil).To(Equal(test.code == http.StatusConflict), "%v", err)
				g.Expect(patched.Name == "web").To(Equal(err == nil), "the operator must get the whole reply")
				log := tap.Requests()
				g.Expect(log).To(HaveLen(1))
				g.Expect(log[0].Unchanged).To(Equal(test.want))
				g.Expect(strings.HasSuffix(log[0].String(), ": 200, nothing changed")).To(Equal(test.want), log[0].String())
			})
		}
	}
}

// broken is a transport whose replies break off.
type broken struct{}

// RoundTrip implements http.RoundTripper.
func (broken) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"kind":`), failing{errBroken})),
	}, nil
}

func TestReplyToAnApplyBreaksOff(t *testing.T) {
	g, tap := NewWithT(t), New()
	tap.ReadBefore(func(context.Context, Request) (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{}, nil
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://127.0.0.1"+configMaps+"/settings", strings.NewReader("{}"))
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", string(types.ApplyYAMLPatchType))
	response, err := (&transport{tap: tap, next: broken{}}).RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	g.Expect(errors.Is(err, errBroken)).To(BeTrue(), "the operator must get the error: %v", err)
	g.Expect(string(content)).To(Equal(`{"kind":`))
	g.Expect(tap.Requests()).To(HaveExactElements(And(HaveField("Done", true), HaveField("Status", http.StatusOK), HaveField("Unchanged", false))))
}
