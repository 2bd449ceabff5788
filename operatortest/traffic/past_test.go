package traffic

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// asked returns a client for an API server without objects, and a function that returns the query of the request that
// has arrived since the function was last called, or nil if there was none. The API server can't answer a second
// request before the function is called.
func asked(t *testing.T, tap *Tap) (kubernetes.Interface, func() url.Values) {
	queries := make(chan url.Values, 1)
	listening := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		queries <- request.URL.Query()
		reply.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(reply, `{"apiVersion":"v1","kind":"List","items":[]}`)
	}))
	t.Cleanup(listening.Close)
	clients := newClient(NewWithT(t), tap, &rest.Config{Host: listening.URL, QPS: -1})
	return clients, func() url.Values {
		select {
		case query := <-queries:
			return query
		default:
			return nil
		}
	}
}

func TestShowPast(t *testing.T) {
	g, tap := NewWithT(t), New()
	clients, query := asked(t, tap)
	catchUp := tap.ShowPast("7", ofConfigMaps)
	list := func(version string) url.Values {
		_, err := clients.CoreV1().ConfigMaps("here").List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		g.Expect(err).NotTo(HaveOccurred())
		return query()
	}
	past := And(HaveKeyWithValue("resourceVersion", []string{"7"}), HaveKeyWithValue("resourceVersionMatch", []string{"Exact"}))

	g.Expect(list("0")).To(past, "a list that may come from a cache must show the past")
	g.Expect(list("")).To(BeEmpty(), "a list that must be up to date must stay unchanged")
	g.Expect(list("5")).NotTo(past, "a list that names a revision itself must stay unchanged")

	_, err := clients.CoreV1().Secrets("here").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(query()).NotTo(past, "lists of other objects must stay unchanged")

	_, err = clients.CoreV1().ConfigMaps("here").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a watch in place of a list must be refused as invalid: %v", err)
	g.Expect(query()).To(BeNil(), "the API server must get no request")

	log := tap.Requests()
	g.Expect(log[0].Past).To(Equal("7"))
	g.Expect(log[0].String()).To(HaveSuffix("list configmaps here/: 200, as of revision 7"))
	g.Expect(log[1].Past).To(BeEmpty())

	catchUp()
	g.Expect(list("0")).NotTo(past, "lists must be unchanged after the cache has caught up")
}

func TestShowPastHoldsLaterEvents(t *testing.T) {
	g, server, tap := NewWithT(t), newStream(t), New()
	catchUp := tap.ShowPast("7", ofConfigMaps)
	seen := watching(t, tap, server.config)
	server.events <- event("MODIFIED", "a", 8)
	pendingIn(g, tap, 1)
	g.Expect(seen.ResultChan()).NotTo(Receive(), "later events must not be delivered yet")
	catchUp()
	g.Expect(next(g, seen)).To(Equal("MODIFIED a 8"))
}
