package doks_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

func TestFaultsBeforeAndAfterTheEffect(t *testing.T) {
	cases := map[string]struct {
		fault    string
		status   int // 0: no reply, or only a part of it
		kind     string
		clusters int
	}{
		"429":                  {"POST * 429", http.StatusTooManyRequests, "application/json", 0},
		"500 before":           {"POST * 500", http.StatusInternalServerError, "application/json", 0},
		"500 after":            {"POST * 500 after", http.StatusInternalServerError, "application/json", 1},
		"502 before":           {"POST * 502", http.StatusBadGateway, "text/html", 0},
		"502 after":            {"POST * 502 after", http.StatusBadGateway, "text/html", 1},
		"503 before":           {"POST * 503", http.StatusServiceUnavailable, "application/json", 0},
		"503 after":            {"POST * 503 after", http.StatusServiceUnavailable, "application/json", 1},
		"a drop before":        {"POST * drop", 0, "", 0},
		"a drop after":         {"POST * drop after", 0, "", 1},
		"a cut body":           {"POST * cut", 0, "", 1},
		"another method":       {"PUT * drop", http.StatusCreated, "application/json", 1},
		"another path":         {"POST /v2/kubernetes/clusters/* drop", http.StatusCreated, "application/json", 1},
		"skipping the first":   {"POST * drop skip=1", http.StatusCreated, "application/json", 1},
		"any method, any path": {"* * drop", 0, "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.fault(c.fault)
			got, err := l.send(fullToken, "POST", clustersURL, body())
			l.Expect(err != nil).To(Equal(c.status == 0), "got %v", err)
			if c.status != 0 {
				l.Expect(got.status).To(Equal(c.status))
				l.Expect(got.header.Get("Content-Type")).To(Equal(c.kind))
			}
			l.Expect(l.cloud.Clusters()).To(HaveLen(c.clusters))
			entries := l.cloud.Journal()
			l.Expect(entries).To(HaveLen(1))
			l.Expect(entries[0].Done).To(BeTrue())
			l.Expect(entries[0].Effective).To(Equal(c.clusters == 1))
		})
	}
}

func TestAFaultHitsAsManyRequestsAsItSays(t *testing.T) {
	l := newLab(t)
	l.fault("GET * 503 skip=1 count=2")
	l.fault("GET * 500")
	statuses := []int{}
	for range 5 {
		statuses = append(statuses, l.do("GET", clustersURL, "").status)
	}
	l.Expect(statuses).To(Equal([]int{500, 503, 503, 200, 200}), "the newer fault must hit the request that the older one skips")
	l.fault("GET * 503 count=-1")
	l.Expect(l.cloud.Faults()).To(HaveLen(1))
	for range 3 {
		l.Expect(l.do("GET", clustersURL, "").status).To(Equal(503))
	}
	l.cloud.ClearFaults()
	l.Expect(l.do("GET", clustersURL, "").status).To(Equal(200))
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	l := newLab(t)
	l.fault("GET * 429 retry_after=1500ms")
	l.fault("GET * 429")
	first := l.do("GET", clustersURL, "")
	l.Expect(first.header.Get("Retry-After")).To(Equal("2"))
	l.Expect(first.body).To(HaveKeyWithValue("message", "API Rate limit exceeded."))
	l.Expect(first.body).To(HaveKeyWithValue("id", "too_many_requests"))
	l.Expect(l.do("GET", clustersURL, "").header).NotTo(HaveKey("Retry-After"))
}

func TestADelayWaitsByTheClock(t *testing.T) {
	for name, after := range map[string]string{"before the effect": "", "after the effect": " after"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.fault("POST * delay delay=10s" + after)
			replies := make(chan int, 1)
			go func() {
				got, _ := l.send(fullToken, "POST", clustersURL, body())
				replies <- got.status
			}()
			l.Eventually(l.clock.HasWaiters).WithTimeout(testLimit).Should(BeTrue())
			clusters := 0
			if after != "" {
				clusters = 1
			}
			l.Expect(l.cloud.Clusters()).To(HaveLen(clusters))
			l.Expect(replies).NotTo(Receive())
			l.clock.Step(10 * time.Second)
			l.Eventually(replies).WithTimeout(testLimit).Should(Receive(Equal(http.StatusCreated)))
			l.Expect(l.cloud.Clusters()).To(HaveLen(1))
		})
	}
}

func TestAClientThatGivesUpEndsADelay(t *testing.T) {
	l := newLab(t)
	l.fault("POST * delay delay=10s")
	ctx, cancel := context.WithCancel(l.ctx)
	l.ctx = ctx
	failed := make(chan error, 1)
	go func() {
		_, err := l.send(fullToken, "POST", clustersURL, body())
		failed <- err
	}()
	l.Eventually(l.clock.HasWaiters).WithTimeout(testLimit).Should(BeTrue())
	cancel()
	l.Eventually(failed).WithTimeout(testLimit).Should(Receive(MatchError(context.Canceled)))
	l.Eventually(func() bool { return l.cloud.Journal()[0].Done }).WithTimeout(testLimit).Should(BeTrue())
	l.Expect(l.cloud.Clusters()).To(BeEmpty(), "a request that is given up before its effect must have none")
	l.Expect(l.cloud.Journal()[0].Note).To(ContainSubstring("given up by the client"))
}

func TestADeletionThatNeverEnds(t *testing.T) {
	for _, state := range []doks.State{doks.StateDeleted, doks.DeleteAtOnce} {
		t.Run("with the delete state "+string(state), func(t *testing.T) {
			l := newLab(t, func(o *doks.Options) { o.DeleteState = state })
			made := l.createRunning("demo", 1)
			l.fault("DELETE * stuck-delete")
			l.Expect(l.do("DELETE", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNoContent))
			l.clock.Step(1000 * time.Hour)
			l.Expect(l.cloud.Clusters()).To(HaveExactElements(HaveField("Status.State", doks.StateDeleted)))
			l.Expect(l.do("DELETE", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNoContent))
			l.Expect(l.cloud.Remove(made.ID)).To(Succeed())
			l.Expect(l.cloud.Clusters()).To(BeEmpty())
		})
	}
}

func TestAListThatLagsBehind(t *testing.T) {
	l := newLab(t)
	l.create("old", 1)
	l.clock.Step(time.Minute)
	made := l.create("new", 1)
	l.fault("GET /v2/kubernetes/clusters lagging-list delay=10s count=2")
	lagging := l.do("GET", clustersURL, "")
	l.Expect(lagging.text).To(ContainSubstring(`"meta":{"total":1}`))
	l.Expect(lagging.text).NotTo(ContainSubstring(made.ID))
	l.Expect(l.get(made.ID).Name).To(Equal("new"), "a cluster that the list lacks must be readable by its ID")
	l.clock.Step(10 * time.Second)
	l.Expect(l.do("GET", clustersURL, "").text).To(ContainSubstring(made.ID), "the list must have caught up")
}

func TestAGetThatLagsBehind(t *testing.T) {
	l := newLab(t)
	old := l.create("old", 1)
	l.clock.Step(time.Minute)
	made := l.create("new", 1)
	l.fault("GET /v2/kubernetes/clusters/* lagging-get delay=10s count=-1")
	l.Expect(l.do("GET", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNotFound))
	l.Expect(l.get(old.ID).Name).To(Equal("old"))
	l.Expect(l.do("GET", clustersURL, "").text).To(ContainSubstring(made.ID), "the list must show it")
	l.clock.Step(10 * time.Second)
	l.Expect(l.get(made.ID).Name).To(Equal("new"))
}

func TestAFaultChoosesHowProvisioningEnds(t *testing.T) {
	l := newLab(t)
	l.fault("POST /v2/kubernetes/clusters end-state state=error skip=1")
	one, two := l.create("one", 1), l.create("two", 1)
	l.clock.Step(time.Minute)
	l.Expect(string(l.get(one.ID).Status.State)).To(Equal("running"))
	l.Expect(string(l.get(two.ID).Status.State)).To(Equal("error"))
	l.Expect(l.get(two.ID).Status.Message).To(Equal("provisioning failed"))
}

func TestInvalidFaults(t *testing.T) {
	cases := map[string]struct{ text, message string }{
		"too few words":                  {"POST drop", "write METHOD PATH KIND"},
		"an unknown kind":                {"POST * explode", "choose 429"},
		"a method in lower-case letters": {"post * drop", "write it in capitals"},
		"a broken pattern":               {"POST /v2/[ drop", "syntax error in pattern"},
		"a delay without its time":       {"POST * delay", "take a delay"},
		"a lagging list without a time":  {"GET * lagging-list", "take a delay"},
		"a time for another kind":        {"POST * drop delay=1s", "take a delay"},
		"a wait without a 429":           {"POST * 503 retry_after=1s", "takes retry_after"},
		"a negative wait":                {"POST * 429 retry_after=-1s", "takes retry_after"},
		"after, without an effect":       {"POST * 429 after", "cannot come after the effect"},
		"an invalid end state":           {"POST * end-state state=deleted", "takes a state"},
		"an end state that is missing":   {"POST * end-state", "takes a state"},
		"a state for another kind":       {"POST * drop state=error", "takes a state"},
		"an unknown state":               {"POST * drop state=x", "takes a state"},
		"a count below -1":               {"POST * drop count=-2", "count is -2"},
		"a negative skip":                {"POST * drop skip=-1", "skip is -1"},
		"a count that is not a number":   {"POST * drop count=x", "count=x"},
		"an invalid time":                {"POST * delay delay=x", "delay=x"},
		"an unknown word":                {"POST * drop often", `"often" is not one of`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := doks.ParseFault(c.text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

func TestParseFault(t *testing.T) {
	g := NewWithT(t)
	fault, err := doks.ParseFault("DELETE /v2/kubernetes/clusters/* 503 after count=-1 skip=2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fault).To(Equal(doks.Fault{
		Method: "DELETE", Path: "/v2/kubernetes/clusters/*", Kind: doks.FaultUnavailable, Count: doks.Always, Skip: 2, After: true,
	}))
}
