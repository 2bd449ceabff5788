package doks_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

// poolPath returns the path of the first cluster's first pool.
func (l *lab) poolPath() string {
	l.Helper()
	found := l.cloud.Clusters()[0]
	return clustersURL + "/" + found.ID + "/node_pools/" + found.NodePools[0].ID
}

// nodes returns the states of the nodes of the first cluster's first pool.
func (l *lab) nodes() []string {
	l.Helper()
	found := []string{}
	for _, node := range l.cloud.Clusters()[0].NodePools[0].Nodes {
		found = append(found, node.Status.State)
	}
	return found
}

func TestAPoolGrowsAndShrinksOverTime(t *testing.T) {
	l := newLab(t)
	l.createRunning("demo", 2)
	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":3}`).status).To(Equal(http.StatusAccepted))
	l.Expect(l.nodes()).To(Equal([]string{"running", "running", "provisioning"}))
	l.clock.Step(time.Second)
	l.Expect(l.nodes()).To(Equal([]string{"running", "running", "running"}))
	oldest := l.cloud.Clusters()[0].NodePools[0].Nodes[0].ID

	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":1}`).status).To(Equal(http.StatusAccepted))
	l.Expect(l.nodes()).To(Equal([]string{"running", "draining", "draining"}), "the youngest nodes must be removed")
	l.clock.Step(time.Second)
	l.Expect(l.nodes()).To(Equal([]string{"running", "deleting", "deleting"}))
	l.clock.Step(time.Second)
	l.Expect(l.nodes()).To(Equal([]string{"running"}))
	l.Expect(l.cloud.Clusters()[0].NodePools[0].Nodes[0].ID).To(Equal(oldest))
	l.Expect(l.cloud.Clusters()[0].NodePools[0].Count).To(Equal(1))
}

func TestAPoolAddedWhileProvisioningWaitsForTheControlPlane(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	l.clock.Step(2500 * time.Millisecond)
	l.Expect(l.do("POST", clustersURL+"/"+made.ID+"/node_pools", pool(`name="late"`)).status).To(Equal(http.StatusCreated))
	l.clock.Step(1200 * time.Millisecond)
	l.Expect(states(l.get(made.ID))).To(Equal([]string{"provisioning", "provisioning"}))
	l.clock.Step(300 * time.Millisecond)
	l.Expect(states(l.get(made.ID))).To(Equal([]string{"running", "running"}))
}

func TestDeletingANode(t *testing.T) {
	cases := map[string]struct {
		query  string
		states []string
		count  int
	}{
		"drains it":                           {"", []string{"draining", "running", "running"}, 2},
		"skips draining":                      {"?skip_drain=1", []string{"deleting", "running", "running"}, 2},
		"replaces it":                         {"?replace=1", []string{"draining", "running", "running", "provisioning"}, 3},
		"replaces it without draining":        {"?replace=1&skip_drain=1", []string{"deleting", "running", "running", "provisioning"}, 3},
		"ignores other values and parameters": {"?skip_drain=0&other=1", []string{"draining", "running", "running"}, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.createRunning("demo", 3)
			path := l.poolPath() + "/nodes/" + l.cloud.Clusters()[0].NodePools[0].Nodes[0].ID
			l.Expect(l.do("DELETE", path+c.query, "").status).To(Equal(http.StatusAccepted))
			l.Expect(l.nodes()).To(Equal(c.states))
			l.Expect(l.cloud.Clusters()[0].NodePools[0].Count).To(Equal(c.count))
			l.Expect(l.do("DELETE", path, "").status).To(Equal(http.StatusAccepted), "a second request must be accepted")
			l.Expect(l.cloud.Effective("delete node")).To(HaveLen(1), "a second request must change nothing")
			l.clock.Step(2 * time.Second)
			l.Expect(l.nodes()).To(HaveLen(c.count))
			l.Expect(l.nodes()).To(HaveEach("running"))
			l.Expect(l.do("DELETE", path, "").status).To(Equal(http.StatusNotFound))
		})
	}
}

func TestTheLastNodeAndTheLastPoolCannotBeDeleted(t *testing.T) {
	l := newLab(t)
	l.createRunning("demo", 1)
	node := l.poolPath() + "/nodes/" + l.cloud.Clusters()[0].NodePools[0].Nodes[0].ID
	l.Expect(l.do("DELETE", node, "").status).To(Equal(http.StatusUnprocessableEntity))
	l.Expect(l.do("DELETE", node+"?replace=1", "").status).To(Equal(http.StatusAccepted))
	l.Expect(l.do("DELETE", l.poolPath(), "").text).To(ContainSubstring("a cluster needs at least one node pool"))
}

func TestRefusedUpdatesOfAPool(t *testing.T) {
	cases := map[string]struct{ body, message string }{
		"no name":                      {`{"count":1}`, "name and count are required"},
		"no count":                     {`{"name":"workers"}`, "name and count are required"},
		"a count of 0":                 {`{"name":"workers","count":0}`, "count must be greater than or equal to 1"},
		"a count beyond the limit":     {`{"name":"workers","count":10}`, "desired nodes exceed limits, 9 additional nodes"},
		"bounds beyond the limit":      {`{"name":"workers","count":1,"auto_scale":true,"min_nodes":1,"max_nodes":10}`, "autoscale desired max nodes exceed limits, 9 additional nodes"},
		"no minimum":                   {`{"name":"workers","count":1,"auto_scale":true,"max_nodes":2}`, "min nodes must be greater than or equal to 1"},
		"the name of another pool":     {`{"name":"second","count":1}`, "a node pool with this name already exists"},
		"an unknown effect of a taint": {`{"name":"workers","count":1,"taints":[{"key":"a","effect":"x"}]}`, "invalid taint"},
		"taints that are not a list":   {`{"name":"workers","count":1,"taints":3}`, "cannot be of type number"},
	}
	l := newLab(t)
	made := l.createRunning("demo", 1)
	l.Expect(l.do("POST", clustersURL+"/"+made.ID+"/node_pools", pool(`name="second"`)).status).To(Equal(http.StatusCreated))
	l.Expect(l.do("POST", clustersURL+"/"+made.ID+"/node_pools", pool(`name="second"`)).status).To(Equal(http.StatusUnprocessableEntity))
	before := l.cloud.Clusters()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := l.do("PUT", l.poolPath(), c.body)
			g.Expect(got.text).To(ContainSubstring(c.message))
			g.Expect(l.cloud.Clusters()).To(Equal(before))
		})
	}
}

func TestAutoscalingHasBounds(t *testing.T) {
	l := newLab(t)
	l.Expect(l.do("POST", clustersURL, body("node_pools=["+pool("count=", "auto_scale=true", "min_nodes=2", "max_nodes=4")+"]")).status).To(Equal(http.StatusCreated))
	l.clock.Step(time.Minute)
	made := l.cloud.Clusters()[0].NodePools[0]
	l.Expect(made.Count).To(Equal(2), "without a count, the pool must start with the minimum")
	l.Expect(made.MinNodes).To(Equal(2))
	l.Expect(made.MaxNodes).To(Equal(4))
	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":5}`).status).To(Equal(http.StatusUnprocessableEntity))
	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":4,"auto_scale":false}`).status).To(Equal(http.StatusAccepted))
	changed := l.cloud.Clusters()[0].NodePools[0]
	l.Expect(changed.MinNodes + changed.MaxNodes).To(BeZero())
	l.Expect(changed.Count).To(Equal(4))
}

func TestTheDropletLimitCountsAllClusters(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.DropletLimit = 4 })
	l.create("one", 3)
	refused := l.do("POST", clustersURL, body("node_pools=["+pool("count=2")+"]"))
	l.Expect(refused.text).To(ContainSubstring("2 additional nodes but not enough available droplet limit"))
	l.Expect(l.do("POST", clustersURL, body()).status).To(Equal(http.StatusCreated))
	path := fmt.Sprintf("%s/%s/node_pools", clustersURL, l.cloud.Clusters()[0].ID)
	l.Expect(l.do("POST", path, pool(`name="b"`)).status).To(Equal(http.StatusUnprocessableEntity))
}
