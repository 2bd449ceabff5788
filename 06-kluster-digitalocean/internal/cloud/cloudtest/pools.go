package cloudtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

// poolTest changes the pools of a running cluster. Each function gets the pool of World.Spec.
type poolTest struct {
	// from returns the pools that the cluster is created with. If it is nil, the cluster is created with the pool of
	// World.Spec. to returns the pools that UpdatePools is called with.
	from func(cloud.Pool) []cloud.Pool
	to   func(cloud.Pool) []cloud.Pool
	// same means that there is nothing to change.
	same bool
}

func poolTests() map[string]poolTest {
	one := func(edit func(*cloud.Pool)) func(cloud.Pool) []cloud.Pool {
		return func(pool cloud.Pool) []cloud.Pool {
			edit(&pool)
			return []cloud.Pool{pool}
		}
	}
	plain := one(func(*cloud.Pool) {})
	labelled := one(func(pool *cloud.Pool) { pool.Labels = map[string]string{"tier": "web", "zone": "a"} })
	tainted := one(func(pool *cloud.Pool) {
		pool.Taints = []cloud.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}, {Key: "odd", Effect: "NoExecute"}}
	})
	scaled := func(least, most int) func(cloud.Pool) []cloud.Pool {
		return one(func(pool *cloud.Pool) { pool.Autoscale = &cloud.Autoscale{Min: least, Max: most} })
	}
	retainted := one(func(pool *cloud.Pool) {
		pool.Taints = []cloud.Taint{{Key: "odd", Effect: "NoExecute"}, {Key: "dedicated", Value: "web", Effect: "NoSchedule"}}
	})
	two := func(pool cloud.Pool) []cloud.Pool { return []cloud.Pool{pool, renamed(pool, "jobs")} }
	return map[string]poolTest{
		"the same":                 {to: plain, same: true},
		"resized":                  {to: one(func(pool *cloud.Pool) { pool.Count += 2 })},
		"labelled":                 {to: labelled},
		"labelled, and the same":   {from: labelled, to: labelled, same: true},
		"relabelled":               {from: labelled, to: one(func(pool *cloud.Pool) { pool.Labels = map[string]string{"tier": "api"} })},
		"no longer labelled":       {from: labelled, to: plain},
		"tainted":                  {to: tainted},
		"tainted, and the same":    {from: tainted, to: tainted, same: true},
		"tainted in another order": {from: tainted, to: retainted, same: true},
		"no longer tainted":        {from: tainted, to: plain},
		"added":                    {to: two},
		"removed":                  {from: two, to: plain},
		"replaced by another":      {to: one(func(pool *cloud.Pool) { pool.Name = "another" })},
		"scaled by the cloud":      {to: scaled(1, 3)},
		"scaled, and the same":     {from: scaled(1, 3), to: scaled(1, 3), same: true},
		"scaled within new bounds": {from: scaled(1, 3), to: scaled(2, 5)},
		"no longer scaled":         {from: scaled(1, 3), to: one(func(pool *cloud.Pool) { pool.Count = 2 })},
		"scaled without any count": {from: plain, to: one(func(pool *cloud.Pool) { pool.Count, pool.Autoscale = 0, &cloud.Autoscale{Min: 2, Max: 4} })},
	}
}

func (p poolTest) run(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	pool := world.Spec.Pools[0]
	if p.from != nil {
		world.Spec.Pools = p.from(pool)
	}
	running := world.await(t, world.create(t).ID)
	wanted := p.to(pool)
	changed, err := world.Account.UpdatePools(t.Context(), running, wanted)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(changed).To(gomega.Equal(!p.same))

	g.Eventually(func() []cloud.Pool { return wishes(world.await(t, running.ID).Pools) }).
		WithTimeout(timeout).Should(gomega.ConsistOf(wishes(wanted)))
	changed, err = world.Account.UpdatePools(t.Context(), world.await(t, running.ID), wanted)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(changed).To(gomega.BeFalse(), "a second call must change nothing")
}

// wishes returns copies of the pools that can be compared: they contain only the fields that a spec sets, and the
// taints in a fixed order. With autoscale, the count is left out, too, because the cloud chooses it.
func wishes(pools []cloud.Pool) []cloud.Pool {
	asked := slices.Clone(pools)
	for i := range asked {
		asked[i].ID, asked[i].Running = "", 0
		if asked[i].Autoscale != nil {
			asked[i].Count = 0
		}
		if len(asked[i].Labels) == 0 {
			asked[i].Labels = nil
		}
		asked[i].Taints = slices.SortedFunc(slices.Values(asked[i].Taints), func(a, b cloud.Taint) int { return strings.Compare(a.Key, b.Key) })
	}
	return asked
}

func renamed(pool cloud.Pool, name string) cloud.Pool {
	pool.Name = name
	return pool
}

func (w World) create(t *testing.T) *cloud.Cluster {
	t.Helper()
	made, err := w.Account.Create(t.Context(), owner, w.Spec)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	gomega.NewWithT(t).Expect(made).NotTo(gomega.BeNil(), "Create must return the cluster that it has made")
	return made
}

// await waits until the cluster is running, and returns it.
func (w World) await(t *testing.T, id string) *cloud.Cluster {
	t.Helper()
	var found *cloud.Cluster
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		var err error
		found, err = w.Account.Get(t.Context(), id)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if found == nil {
			gomega.StopTrying("Get returns neither a cluster nor an error").Now()
		}
		g.Expect(found.ID).To(gomega.Equal(id))
		if found.Version == "" {
			gomega.StopTrying(fmt.Sprintf("the cluster is %q and has no version: a cluster must have one in every state", found.State)).Now()
		}
		g.Expect(found.State).To(gomega.Equal(cloud.StateRunning), found.Message)
	}).WithTimeout(timeout).Should(gomega.Succeed())
	return found
}

// expect checks that the error is, or wraps, a *cloud.Error with the problem and a message, and that it shows no
// token, however it is formatted.
func (w World) expect(t *testing.T, err error, problem cloud.Problem) {
	t.Helper()
	g := gomega.NewWithT(t)
	g.Expect(err).To(gomega.HaveOccurred(), "expected the problem %q", problem)
	answer, answered := errors.AsType[*cloud.Error](err)
	g.Expect(answered).To(gomega.BeTrue(), "expected a *cloud.Error, found: %v", err)
	g.Expect(answer.Problem).To(gomega.Equal(problem), err.Error())
	g.Expect(answer.Message).NotTo(gomega.BeEmpty())
	for _, token := range w.Tokens {
		g.Expect(fmt.Sprintf("%v %+v %#v %s", err, err, answer, answer.Message)).NotTo(gomega.ContainSubstring(token))
	}
}
