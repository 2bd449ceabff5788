package digitalocean_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	"example.com/operator-workshop/06-kluster-digitalocean/internal/digitalocean"
)

// A redirect must not send the token to another host, and that host's response says nothing about a cluster.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusNotFound)
		_, _ = writer.Write([]byte(`{"id":"not_found","message":"no such cluster"}`))
	}))
	t.Cleanup(elsewhere.Close)
	calls := map[string]func(context.Context, *digitalocean.Account) error{
		"identity": func(ctx context.Context, account *digitalocean.Account) error {
			_, err := account.Identity(ctx)
			return err
		},
		"find": func(ctx context.Context, account *digitalocean.Account) error {
			_, err := account.Find(ctx, cloud.Owner{UID: "owner"})
			return err
		},
		"get": func(ctx context.Context, account *digitalocean.Account) error {
			_, err := account.Get(ctx, "1")
			return err
		},
		"create": func(ctx context.Context, account *digitalocean.Account) error {
			_, err := account.Create(ctx, cloud.Owner{UID: "owner"}, newSpec("shop"))
			return err
		},
		"delete": func(ctx context.Context, account *digitalocean.Account) error { return account.Delete(ctx, "1") },
		"kubeconfig": func(ctx context.Context, account *digitalocean.Account) error {
			_, err := account.Kubeconfig(ctx, &cloud.Cluster{ID: "1"})
			return err
		},
	}
	for name, call := range calls {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			t.Run(name+" "+http.StatusText(status), func(t *testing.T) {
				g := NewWithT(t)
				account := serving(t, func(writer http.ResponseWriter, request *http.Request) {
					http.Redirect(writer, request, elsewhere.URL+request.URL.Path, status)
				})
				err := call(t.Context(), account)
				g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v; see New in digitalocean.go", err)
				g.Expect(err).To(MatchError(ContainSubstring("name the API's own address in --do-api-url")))
				g.Expect(visits.Load()).To(BeZero(), "no request may go to another host")
			})
		}
	}
}
