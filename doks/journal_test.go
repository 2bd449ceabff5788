package doks_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"

	"example.com/operator-workshop/doks"
)

func TestTheJournalSaysWhatWasRequestedAndWhatTookEffect(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	path := clustersURL + "/" + made.ID
	l.clock.Step(time.Second)
	_, err := l.send(readToken, "GET", path+"?a=b", "")
	l.Expect(err).NotTo(HaveOccurred())
	_, err = l.send(readToken, "DELETE", path, "")
	l.Expect(err).NotTo(HaveOccurred())
	_, err = l.send("wrong", "DELETE", path, "")
	l.Expect(err).NotTo(HaveOccurred())
	_, err = l.send("", "GET", "/v2/droplets", "")
	l.Expect(err).NotTo(HaveOccurred())
	l.do("POST", clustersURL, body())
	l.do("DELETE", path, "")

	entry := func(number int, token, method, path, operation string, status int, effective bool) doks.Entry {
		found := doks.Entry{Number: number, Time: beginning.Add(time.Second), Token: token, Method: method, Path: path, Operation: operation, Status: status, Effective: effective, Done: true}
		if number != 5 && number != 6 {
			found.ClusterID = made.ID
		}
		if number < 3 || number > 5 {
			found.ClusterName = "demo"
		}
		return found
	}
	first := entry(1, "token-1", "POST", clustersURL, "create cluster", 201, true)
	first.Time = beginning
	l.Expect(l.cloud.Journal()).To(Equal([]doks.Entry{
		first,
		entry(2, "read-only-1", "GET", path+"?a=b", "get cluster", 200, false),
		entry(3, "read-only-1", "DELETE", path, "delete cluster", 403, false),
		entry(4, "unknown", "DELETE", path, "delete cluster", 401, false),
		entry(5, "none", "GET", "/v2/droplets", "unknown", 401, false),
		entry(6, "token-1", "POST", clustersURL, "create cluster", 422, false),
		entry(7, "token-1", "DELETE", path, "delete cluster", 204, true),
	}))
	l.cloud.ClearJournal()
	l.do("GET", clustersURL, "")
	l.Expect(l.cloud.Journal()).To(HaveExactElements(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{"Number": Equal(8)})))
}

func TestTokensAreNotLogged(t *testing.T) {
	log := &bytes.Buffer{}
	l := newLab(t, func(o *doks.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	for _, token := range []string{fullToken, readToken} {
		for _, path := range []string{clustersURL, clustersURL + "?token=" + token, "/v2/" + token} {
			_, err := l.send(token, "GET", path, "")
			l.Expect(err).NotTo(HaveOccurred())
		}
	}
	l.server.Close() // wait until no request is in progress, so that the log is complete
	l.Expect(log.String()).To(ContainSubstring("GET " + clustersURL))
	for _, entry := range l.cloud.Journal() {
		log.WriteString(entry.Token + entry.Path + entry.String())
	}
	l.Expect(log.String()).NotTo(ContainSubstring(fullToken))
	l.Expect(log.String()).NotTo(ContainSubstring(readToken))
}

func TestTheInterrupterRunsAroundEveryCall(t *testing.T) {
	l := newLab(t)
	var calls []doks.Call
	var during, after []int
	l.cloud.Interrupt(func(call doks.Call) (func() error, error) {
		calls = append(calls, call)
		during = append(during, len(l.cloud.Clusters()))
		return func() error {
			after = append(after, len(l.cloud.Clusters()))
			entries := l.cloud.Journal()
			l.Expect(entries[len(entries)-1].Status).NotTo(BeZero(), "the journal must already say what the call did")
			return nil
		}, nil
	})
	made := l.create("demo", 1)
	l.get(made.ID)
	l.do("DELETE", clustersURL+"/"+made.ID, "")
	_, err := l.send("", "GET", clustersURL, "")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(calls).To(Equal([]doks.Call{
		{Number: 1, Method: "POST", Path: clustersURL, Operation: "create cluster", Write: true, ClusterName: "demo"},
		{Number: 2, Method: "GET", Path: clustersURL + "/" + made.ID, Operation: "get cluster", ClusterID: made.ID, ClusterName: "demo"},
		{Number: 3, Method: "DELETE", Path: clustersURL + "/" + made.ID, Operation: "delete cluster", Write: true, ClusterID: made.ID, ClusterName: "demo"},
	}), "a call without authentication must not be among them")
	l.Expect(during).To(Equal([]int{0, 1, 1}))
	l.Expect(after).To(Equal([]int{1, 1, 1}))
	l.cloud.Interrupt(nil)
	l.do("GET", clustersURL, "")
	l.Expect(calls).To(HaveLen(3))
}

func TestTheInterrupterDropsACallBeforeOrAfterItsEffect(t *testing.T) {
	killed := errors.New("the operator was killed")
	cases := map[string]struct {
		interrupt doks.Interrupter
		clusters  int
		status    int
		note      string
	}{
		"before": {
			func(doks.Call) (func() error, error) { return nil, killed },
			0, 0, "dropped before the effect: the operator was killed",
		},
		"after": {
			func(doks.Call) (func() error, error) { return func() error { return killed }, nil },
			1, http.StatusCreated, "its reply was dropped: the operator was killed",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.cloud.Interrupt(c.interrupt)
			_, err := l.send(fullToken, "POST", clustersURL, body())
			l.Expect(err).To(HaveOccurred())
			l.Expect(l.cloud.Clusters()).To(HaveLen(c.clusters))
			l.Expect(l.cloud.Journal()).To(HaveExactElements(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
				"Status": Equal(c.status), "Effective": Equal(c.clusters == 1), "Note": Equal(c.note), "Done": BeTrue(), "ClusterName": Equal("demo"),
			})))
		})
	}
}

func TestAHundredCreatesWithOneNameMakeOneCluster(t *testing.T) {
	l := newLab(t)
	var group sync.WaitGroup
	statuses := make(chan int, 100)
	for range cap(statuses) {
		group.Go(func() {
			got, err := l.send(fullToken, "POST", clustersURL, body())
			if err == nil {
				statuses <- got.status
			}
		})
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	l.Expect(count).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusUnprocessableEntity: 99}))
	l.Expect(l.cloud.Clusters()).To(HaveLen(1))
	l.Expect(l.cloud.Effective("create cluster")).To(HaveLen(1))
	l.Expect(l.cloud.Journal()).To(HaveLen(100))
}

func TestEmulatorsInOneProcessShareNothing(t *testing.T) {
	one, two := newLab(t), newLab(t)
	one.create("demo", 1)
	one.fault("GET * 503 count=-1")
	two.Expect(two.cloud.Clusters()).To(BeEmpty())
	two.Expect(two.cloud.Journal()).To(BeEmpty())
	two.Expect(two.do("GET", clustersURL, "").status).To(Equal(http.StatusOK))
}
