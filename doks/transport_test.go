package doks_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

func TestAuthentication(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	path := clustersURL + "/" + made.ID
	cases := map[string]struct {
		header, method string
		status         int
		id, message    string
	}{
		"no token":                          {"", "GET", 401, "unauthorized", "Unable to authenticate you."},
		"a wrong token":                     {"Bearer wrong", "GET", 401, "unauthorized", "Unable to authenticate you."},
		"the beginning of the right one":    {"Bearer " + fullToken[:8], "GET", 401, "unauthorized", "Unable to authenticate you."},
		"the right one with another scheme": {"Basic " + fullToken, "GET", 401, "unauthorized", "Unable to authenticate you."},
		"the right one without a scheme":    {fullToken, "GET", 401, "unauthorized", "Unable to authenticate you."},
		"a read-only token on a write":      {"Bearer " + readToken, "PUT", 403, "forbidden", "You are not authorized to perform this operation."},
		"a read-only token on a read":       {"Bearer " + readToken, "GET", 200, "", ""},
		"the scheme in lower-case letters":  {"bearer " + fullToken, "GET", 200, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			request, err := http.NewRequestWithContext(l.ctx, c.method, l.server.URL+path, strings.NewReader(`{"name":"x"}`))
			g.Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Authorization", c.header)
			response, err := l.server.Client().Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.StatusCode).To(Equal(c.status))
			g.Expect(response.Header.Get("Content-Type")).To(Equal("application/json"))
			if c.id != "" {
				g.Expect(response).To(HaveHTTPBody(And(ContainSubstring(`"id":"`+c.id+`"`), ContainSubstring(c.message))))
			}
		})
	}
	l.Expect(l.get(made.ID).Name).To(Equal("demo"))
}

func TestUnknownPathsAndIDsGetA404InJSON(t *testing.T) {
	l := newLab(t)
	id := l.createRunning("demo", 1).ID
	for _, call := range []string{
		"GET /", "GET /v2", "GET /v2/droplets", "GET /v2/kubernetes", "GET /v2/kubernetes/", "PATCH /v2/kubernetes/clusters",
		"GET /v2/kubernetes/clusters/no-such", "DELETE /v2/kubernetes/clusters/", "GET /v2/kubernetes/clusters//kubeconfig",
		"PUT /v2/kubernetes/clusters/no-such", "POST /v2/kubernetes/clusters/no-such/upgrade", "GET /v2/kubernetes/clusters/no-such/upgrades",
		"GET /v2/kubernetes/clusters/no-such/user", "GET /v2/kubernetes/clusters/no-such/credentials", "GET /v2/kubernetes/clusters/no-such/status_messages",
		"GET /v2/kubernetes/clusters/no-such/node_pools", "POST /v2/kubernetes/clusters/no-such/node_pools", "GET /v2/kubernetes/clusters/no-such/destroy_with_associated_resources",
		"DELETE /v2/kubernetes/clusters/no-such/destroy_with_associated_resources/dangerous", "GET /v2/kubernetes/clusters/" + id + "/other",
		"GET /v2/kubernetes/clusters/" + id + "/node_pools/no-such", "PUT /v2/kubernetes/clusters/" + id + "/node_pools/no-such",
		"DELETE /v2/kubernetes/clusters/" + id + "/node_pools/no-such", "DELETE /v2/kubernetes/clusters/" + id + "/node_pools/no-such/nodes/x",
		"GET /v2/kubernetes/../kubernetes/clusters", "GET /emulator/other", "GET /emulators", "GET /v2/kubernetes/clusters/a%2Fb",
	} {
		t.Run(call, func(t *testing.T) {
			g := NewWithT(t)
			method, path, _ := strings.Cut(call, " ")
			got := l.do(method, path, `{"name":"x"}`)
			g.Expect(got.status).To(Equal(http.StatusNotFound))
			g.Expect(got.body).To(HaveKeyWithValue("id", "not_found"))
			g.Expect(got.body).To(HaveKeyWithValue("message", "The resource you requested could not be found."))
		})
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	l := newLab(t)
	got := l.do("POST", clustersURL, strings.Repeat(" ", 1<<20)+body())
	l.Expect(got.status).To(Equal(http.StatusBadRequest))
	l.Expect(got.body).To(HaveKeyWithValue("message", "the body is too large"))
}

func TestPages(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.DropletLimit = 0 })
	for i := range 25 {
		l.create(fmt.Sprintf("demo-%02d", i), 1)
	}
	at := func(page, perPage int) string {
		return fmt.Sprintf("%s%s?page=%d&per_page=%d", l.server.URL, clustersURL, page, perPage)
	}
	type links map[string]any
	cases := map[string]struct {
		query       string
		first, size int
		links       links
	}{
		"page 1 of two, by default":          {"", 0, 20, links{"next": at(2, 20), "last": at(2, 20)}},
		"page 2 of two, by default":          {"?page=2", 20, 5, links{"first": at(1, 20), "prev": at(1, 20)}},
		"a page in the middle":               {"?page=2&per_page=10", 10, 10, links{"first": at(1, 10), "prev": at(1, 10), "next": at(3, 10), "last": at(3, 10)}},
		"all clusters on one page":           {"?per_page=25", 0, 25, nil},
		"a page past the end":                {"?page=9&per_page=10", 0, 0, links{"first": at(1, 10), "prev": at(3, 10)}},
		"a page past the only one":           {"?page=2&per_page=200", 0, 0, links{"first": at(1, 200), "prev": at(1, 200)}},
		"a page larger than the maximum":     {"?per_page=1000", 0, 25, nil},
		"numbers that are invalid":           {"?page=x&per_page=-3", 0, 20, links{"next": at(2, 20), "last": at(2, 20)}},
		"a number too large for any page":    {"?page=9223372036854775807&per_page=200", 0, 0, links{"first": at(1, 200), "prev": at(1, 200)}},
		"a query that the API does not know": {"?tag_name=x&per_page=25", 0, 25, nil},
		"page 0 counts as page 1":            {"?page=0", 0, 20, links{"next": at(2, 20), "last": at(2, 20)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := l.do("GET", clustersURL+c.query, "")
			g.Expect(got.status).To(Equal(http.StatusOK))
			g.Expect(got.body["meta"]).To(Equal(map[string]any{"total": 25.0}))
			g.Expect(got.body["kubernetes_clusters"]).To(HaveLen(c.size))
			if c.size > 0 {
				g.Expect(got.body["kubernetes_clusters"].([]any)[0]).To(HaveKeyWithValue("name", fmt.Sprintf("demo-%02d", c.first)))
			}
			want := map[string]any{}
			if c.links != nil {
				want["pages"] = map[string]any(c.links)
			}
			g.Expect(got.body["links"]).To(Equal(want))
		})
	}
}

func TestAPageHasTwoHundredClustersAtMost(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.DropletLimit = 0 })
	for i := range 201 {
		l.create(fmt.Sprintf("demo-%03d", i), 1)
	}
	l.Expect(l.do("GET", clustersURL+"?per_page=1000", "").body["kubernetes_clusters"]).To(HaveLen(200))
}

func TestRequestsPerMinute(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.RequestsPerMinute, o.RequestsPerHour = 3, 100 })
	l.do("GET", clustersURL, "")
	l.clock.Step(20 * time.Second)
	l.do("GET", clustersURL, "")
	last := l.do("GET", clustersURL, "")
	l.Expect(last.header.Get("ratelimit-limit")).To(Equal("100"))
	l.Expect(last.header.Get("ratelimit-remaining")).To(Equal("97"))
	l.Expect(last.header.Get("ratelimit-reset")).To(Equal(strconv.FormatInt(beginning.Add(time.Hour).Unix(), 10)))

	refused := l.do("GET", clustersURL, "")
	l.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	l.Expect(refused.header.Get("retry-after")).To(Equal("40"))
	l.Expect(refused.header.Get("ratelimit-remaining")).To(Equal("97"), "a refused request must not count")
	other, err := l.send(readToken, "GET", clustersURL, "")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(other.status).To(Equal(http.StatusOK), "every token must have its own limit")
	l.clock.Step(40 * time.Second)
	l.Expect(l.do("GET", clustersURL, "").status).To(Equal(http.StatusOK))
	l.Expect(l.do("GET", clustersURL, "").status).To(Equal(http.StatusTooManyRequests))
}

func TestRequestsPerHour(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.RequestsPerHour = 2 })
	l.do("GET", clustersURL, "")
	l.Expect(l.do("GET", clustersURL, "").header.Get("ratelimit-remaining")).To(Equal("0"))
	refused := l.do("GET", clustersURL, "")
	l.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	l.Expect(refused.body).To(HaveKeyWithValue("message", "API Rate limit exceeded."))
	l.Expect(refused.header).NotTo(HaveKey("Retry-After"), "only the limit per minute may set it")
	l.clock.Step(time.Hour - time.Second)
	l.Expect(l.do("GET", clustersURL, "").status).To(Equal(http.StatusTooManyRequests))
	l.clock.Step(time.Second)
	l.Expect(l.do("GET", clustersURL, "").status).To(Equal(http.StatusOK))
}
