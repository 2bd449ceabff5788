package doks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

// steer sends a request to the control API, without a token.
func (l *lab) steer(method, path, body string) answer {
	l.Helper()
	got, err := l.send("", method, "/emulator/"+path, body)
	l.Expect(err).NotTo(HaveOccurred())
	return got
}

func TestTheControlAPI(t *testing.T) {
	l := newLab(t)
	made := l.createRunning("demo", 1)
	l.Expect(l.steer("GET", "journal", "").text).To(ContainSubstring(`"operation":"create cluster","cluster_id":"` + made.ID))
	l.Expect(l.steer("DELETE", "journal", "").status).To(Equal(http.StatusNoContent))
	l.Expect(l.steer("GET", "journal", "").text).To(MatchJSON(`{"journal":[]}`))

	added := l.steer("POST", "faults", `{"method":"GET","path":"/v2/kubernetes/*","kind":"429","retry_after":"1m0s","count":2}`)
	l.Expect(added.status).To(Equal(http.StatusCreated))
	l.Expect(l.do("GET", clustersURL, "").header.Get("Retry-After")).To(Equal("60"))
	l.Expect(l.steer("GET", "faults", "").text).To(MatchJSON(`{"faults":[{"method":"GET","path":"/v2/kubernetes/*","kind":"429","retry_after":"1m0s","count":1}]}`))
	l.Expect(l.steer("DELETE", "faults", "").status).To(Equal(http.StatusNoContent))
	l.Expect(l.steer("GET", "faults", "").text).To(MatchJSON(`{"faults":[]}`))

	l.Expect(l.steer("POST", "clusters/"+made.ID+"/state", `{"state":"degraded","message":"it hurts"}`).status).To(Equal(http.StatusNoContent))
	l.clock.Step(time.Hour)
	l.Expect(l.steer("GET", "clusters", "").text).To(ContainSubstring(`"status":{"state":"degraded","message":"it hurts"}`))
	l.Expect(l.steer("PUT", "clusters/"+made.ID+"/tags", `{"tags":["mine","mine"]}`).status).To(Equal(http.StatusNoContent))
	l.Expect(l.cloud.Clusters()[0].Tags).To(Equal([]string{"mine", "k8s", "k8s:" + made.ID}))
	l.Expect(l.steer("PUT", "clusters/none/tags", `{"tags":["mine"]}`).status).To(Equal(http.StatusUnprocessableEntity))
	l.Expect(l.steer("POST", "clusters/"+made.ID+"/resources", `{"volumes":["a"],"load_balancers":["b"],"volume_snapshots":["c"]}`).status).To(Equal(http.StatusNoContent))
	l.Expect(l.steer("DELETE", "clusters/"+made.ID, "").status).To(Equal(http.StatusNoContent))
	l.Expect(l.steer("GET", "clusters", "").text).To(MatchJSON(`{"kubernetes_clusters":[]}`))
	l.Expect(l.steer("GET", "leftovers", "").text).To(And(ContainSubstring(`"name":"a"`), ContainSubstring(`"name":"b"`), ContainSubstring(`"name":"c"`)))
	l.Expect(l.cloud.Journal()).To(HaveLen(1), "requests to the control API must not be in the journal")
}

func TestEveryStateCanBeSet(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	for _, state := range []doks.State{
		doks.StateDegraded, doks.StateError, doks.StateUpgrading, doks.StateDeleted,
		doks.StateDeleting, doks.StateProvisioning, doks.StateRunning,
	} {
		l.Expect(l.cloud.SetState(made.ID, state, "")).To(Succeed())
		l.clock.Step(time.Hour)
		l.Expect(l.cloud.Clusters()[0].Status.State).To(Equal(state), "the state must not change by itself")
	}
	l.Expect(states(l.get(made.ID))).To(Equal([]string{"running"}))
}

func TestRefusedControlRequests(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	cases := map[string]struct {
		method, path, body string
		status             int
		message            string
	}{
		"a fault that is not JSON":      {"POST", "faults", "{", 400, "JSON"},
		"an invalid fault":              {"POST", "faults", `{"kind":"x"}`, 422, "choose 429"},
		"a delay that is a number":      {"POST", "faults", `{"kind":"delay","delay":5}`, 400, "write a duration as"},
		"an unknown state":              {"POST", "clusters/" + made.ID + "/state", `{"state":"happy"}`, 422, `there is no state \"happy\"`},
		"a state that is not JSON":      {"POST", "clusters/" + made.ID + "/state", `{`, 400, "JSON"},
		"a state for a missing cluster": {"POST", "clusters/no-such/state", `{"state":"running"}`, 422, `there is no cluster \"no-such\"`},
		"resources that are not JSON":   {"POST", "clusters/" + made.ID + "/resources", `{`, 400, "JSON"},
		"a cluster that does not exist": {"DELETE", "clusters/no-such", "", 422, "there is no cluster"},
		"a path with too many parts":    {"GET", "clusters/a/b/c", "", 404, "could not be found"},
		"an unknown action":             {"POST", "clusters/" + made.ID + "/other", "{}", 404, "could not be found"},
		"an unknown method":             {"PUT", "journal", "", 404, "could not be found"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := l.steer(c.method, c.path, c.body)
			g.Expect(got.text).To(ContainSubstring(c.message))
			g.Expect(got.status).To(Equal(c.status))
		})
	}
}

func TestTheControlAPIRefusesWebPages(t *testing.T) {
	cases := map[string]struct {
		method, host, kind string
		status             int
	}{
		"an IPv4 loopback address": {"GET", "127.0.0.1:1", "", 200},
		"an IPv6 loopback address": {"GET", "[::1]:1", "", 200},
		"localhost":                {"GET", "localhost", "", 200},
		"another name":             {"GET", "evil.example", "", 403},
		"another address":          {"GET", "192.0.2.1:8090", "", 403},
		"a form":                   {"POST", "localhost", "application/x-www-form-urlencoded", 400},
		"plain text":               {"POST", "localhost", "text/plain", 400},
		"JSON with a charset":      {"POST", "localhost", "application/json; charset=utf-8", 201},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			path := "/emulator/faults"
			request, err := http.NewRequestWithContext(l.ctx, c.method, l.server.URL+path, strings.NewReader(`{"kind":"drop"}`))
			l.Expect(err).NotTo(HaveOccurred())
			request.Host = c.host
			request.Header.Set("Content-Type", c.kind)
			response, err := l.server.Client().Do(request)
			l.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			l.Expect(response.StatusCode).To(Equal(c.status))
		})
	}
}
