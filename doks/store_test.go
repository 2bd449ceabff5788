package doks_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/doks"
)

func TestARestartContinuesWhereTheLastRunStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	keep := func(o *doks.Options) { o.StateFile = path }
	first := newLab(t, keep)
	first.do("POST", clustersURL, body(`tags=["a"]`, `sso={"enabled":true}`, `node_pools=[`+pool(`labels={"a":"b"}`, `taints=[{"key":"x","effect":"NoSchedule"}]`)+`]`))
	first.clock.Step(time.Minute)
	id := first.cloud.Clusters()[0].ID
	first.Expect(first.cloud.AddResources(id, nil, []string{"vol"}, nil)).To(Succeed())
	first.Expect(first.cloud.SetState(id, doks.StateDegraded, "it hurts")).To(Succeed())
	first.create("late", 1)
	gone := first.create("gone", 1)
	first.do("DELETE", clustersURL+"/"+gone.ID, "")
	before, lists := first.cloud.Clusters(), first.do("GET", clustersURL+"/"+id+"/status_messages", "")
	first.cloud.Close()
	first.server.Close()

	second := newLab(t, keep, func(o *doks.Options) { o.Clock = clocktesting.NewFakeClock(first.clock.Now()) })
	second.Expect(second.cloud.Clusters()).To(Equal(before))
	second.Expect(second.do("GET", clustersURL+"/"+id+"/status_messages", "").text).To(Equal(lists.text))
	second.Expect(second.do("GET", clustersURL+"/"+id+"/destroy_with_associated_resources", "").text).To(ContainSubstring(`"name":"vol"`))
	second.Expect(second.do("POST", clustersURL, body()).status).To(Equal(http.StatusUnprocessableEntity), "the name must still be taken")

	third := newLab(t, keep, func(o *doks.Options) { o.Clock = clocktesting.NewFakeClock(first.clock.Now().Add(time.Hour)) })
	names := map[string]doks.State{}
	for _, each := range third.cloud.Clusters() {
		names[each.Name] = each.Status.State
	}
	third.Expect(names).To(Equal(map[string]doks.State{"demo": "degraded", "late": "running"}), "changes that were due while nothing ran must have happened")
}

func TestTheStateFileIsReplacedAsAWhole(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	l := newLab(t, func(o *doks.Options) { o.StateFile = path })
	for _, name := range []string{"one", "two"} {
		l.create(name, 1)
		content, err := os.ReadFile(path)
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(json.Valid(content)).To(BeTrue())
		l.Expect(string(content)).To(ContainSubstring(`"name": "` + name + `"`))
		l.Expect(string(content)).NotTo(ContainSubstring(fullToken))
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(left).To(Equal([]string{path}), "no partial file may remain")
}

func TestStateFilesThatCannotBeUsedAreRefusedAndKept(t *testing.T) {
	cases := map[string]struct{ content, message string }{
		"no JSON":                 {"{", "is broken"},
		"an empty file":           {"", "is broken"},
		"a list":                  {"[]", "is broken"},
		"another format":          {`{"format": 99}`, "has the format 99, not 1"},
		"a cluster that is null":  {`{"format": 1, "clusters": [null]}`, "a cluster is incomplete"},
		"a cluster without an ID": {`{"format": 1, "clusters": [{}]}`, "a cluster is incomplete"},
		"a pool that is null":     {`{"format": 1, "clusters": [{"id": "a", "settings": {"maintenance_policy": {}}, "pools": [null]}]}`, "a pool of cluster a is incomplete"},
		"a node that is null":     {`{"format": 1, "clusters": [{"id": "a", "settings": {"maintenance_policy": {}}, "pools": [{"nodes": [null]}]}]}`, "a node of cluster a is incomplete"},
		"an invalid time":         {`{"format": 1, "clusters": [{"id": "a", "due": "x"}]}`, "is broken"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "state.json")
			g.Expect(os.WriteFile(path, []byte(c.content), 0o600)).To(Succeed())
			_, err := doks.New(doks.Options{Tokens: []string{"a"}, StateFile: path})
			g.Expect(err).To(MatchError(And(ContainSubstring(c.message), ContainSubstring("remove it to start over"))))
			g.Expect(strings.Count(err.Error(), "\n")).To(BeZero())
			content, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).To(Equal(c.content), "the file must stay as it is, so that you can look at it")
		})
	}
}

func TestAStateFileThatCannotBeWrittenIsReported(t *testing.T) {
	g := NewWithT(t)
	_, err := doks.New(doks.Options{Tokens: []string{"a"}, StateFile: filepath.Join(t.TempDir(), "no", "folder")})
	g.Expect(err).To(MatchError(ContainSubstring("write the state file")), "a state file that can't be written must be reported at the start")

	folder := filepath.Join(t.TempDir(), "folder")
	g.Expect(os.Mkdir(folder, 0o700)).To(Succeed())
	l := newLab(t, func(o *doks.Options) { o.StateFile = filepath.Join(folder, "state.json") })
	l.Expect(os.RemoveAll(folder)).To(Succeed())
	got := l.do("POST", clustersURL, body())
	l.Expect(got.status).To(Equal(http.StatusInternalServerError), "a state file that can't be written must be reported to the client")
	l.Expect(got.body).To(HaveKeyWithValue("id", "server_error"))
}

func TestInvalidOptions(t *testing.T) {
	cases := map[string]struct {
		change  func(*doks.Options)
		message string
	}{
		"no token":                             {func(o *doks.Options) { o.Tokens = nil }, "no token"},
		"an empty token":                       {func(o *doks.Options) { o.Tokens = []string{""} }, "a token is empty"},
		"a team that is not a UUID":            {func(o *doks.Options) { o.Team = "shop" }, `the team is "shop"`},
		"a token that is also a cluster token": {func(o *doks.Options) { o.ClusterTokens = o.Tokens }, "a token is given twice"},
		"a token that is also read-only":       {func(o *doks.Options) { o.ReadOnlyTokens = o.Tokens }, "a token is given twice"},
		"a negative time":                      {func(o *doks.Options) { o.NodeTime = -1 }, "the node time is -1ns"},
		"a negative limit":                     {func(o *doks.Options) { o.DropletLimit = -1 }, "a limit is negative"},
		"an invalid end state":                 {func(o *doks.Options) { o.EndState = "upgrading" }, "choose running, degraded or error"},
		"an unknown delete state":              {func(o *doks.Options) { o.DeleteState = "gone" }, "choose none, deleted or deleting"},
		"an invalid fault":                     {func(o *doks.Options) { o.Faults = []doks.Fault{{}} }, "choose 429"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := doks.Options{Tokens: []string{"very-secret"}}
			c.change(&options)
			_, err := doks.New(options)
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			g.Expect(err.Error()).NotTo(ContainSubstring("very-secret"))
		})
	}
}
