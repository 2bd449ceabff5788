package cloudtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

func testFind(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.create(t)
	g.Expect(made.ID).NotTo(gomega.BeEmpty())
	found, err := world.Account.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.HaveValue(gomega.HaveField("ID", made.ID)))
	for _, each := range []*cloud.Cluster{made, found} {
		g.Expect(each.Name).To(gomega.Equal(world.Spec.Name))
		g.Expect(each.Region).To(gomega.Equal(world.Spec.Region))
		g.Expect(each.Version).To(gomega.Equal(world.Spec.Version), "the version must be that of the spec in every state, also in %q", each.State)
		g.Expect(wishes(each.Pools)).To(gomega.Equal(world.Spec.Pools), "the pools must be those of the spec in every state, also in %q", each.State)
		g.Expect(each.Owners).To(gomega.Equal([]cloud.Owner{owner}))
		g.Expect(each.Origin).To(gomega.Equal(world.Spec.Origin), "the cloud must show people which Kluster the cluster belongs to")
	}
	found, err = world.Account.Find(t.Context(), other)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.BeNil(), "the cluster with this name has another owner")
	running := world.await(t, made.ID)
	g.Expect(running.Endpoint).To(gomega.HavePrefix("https://"))
	g.Expect(wishes(running.Pools)).To(gomega.Equal(world.Spec.Pools))
	for _, pool := range running.Pools {
		g.Expect(pool.ID).NotTo(gomega.BeEmpty())
	}
}

func testNameTaken(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.create(t)
	for _, asking := range []cloud.Owner{owner, other} {
		_, err := world.Account.Create(t.Context(), asking, world.Spec)
		world.expect(t, err, cloud.NameTaken)
	}
	found, err := world.Account.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.HaveValue(gomega.HaveField("ID", made.ID)))
}

// A create request may have taken effect although the cloud does not show the cluster yet. The operator relies on the
// name being taken.
func testLag(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	end := world.Lag()
	made := world.create(t)
	found, err := world.Account.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.BeNil())
	_, err = world.Account.Get(t.Context(), made.ID)
	world.expect(t, err, cloud.NotFound)
	_, err = world.Account.Create(t.Context(), owner, world.Spec)
	world.expect(t, err, cloud.NameTaken)
	end()
	world.await(t, made.ID)
	found, err = world.Account.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.HaveValue(gomega.HaveField("ID", made.ID)))
}

// The owner tags decide which Kluster owns a cluster.
func testRetag(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.create(t)
	for _, owners := range [][]cloud.Owner{{other}, {owner, other}, nil, {owner}} {
		world.Retag(made.ID, owners...)
		shown, err := world.Account.Get(t.Context(), made.ID)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(shown).NotTo(gomega.BeNil(), "Get returns neither a cluster nor an error")
		g.Expect(shown.Owners).To(gomega.ConsistOf(owners))
		for _, asking := range []cloud.Owner{owner, other} {
			found, err := world.Account.Find(t.Context(), asking)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(found != nil).To(gomega.Equal(slices.Contains(owners, asking)), "the cluster has the owner tags of %v", owners)
			g.Expect(shown.IsOwnedBy(asking)).To(gomega.Equal(len(owners) == 1 && owners[0] == asking))
		}
	}
}

// Two replicas may request the same cluster at the same moment. The operator relies on the cloud refusing one request.
func testConcurrentCreates(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	const count = 8
	made, errs := make([]*cloud.Cluster, count), make([]error, count)
	var creations sync.WaitGroup
	for i := range count {
		asking := []cloud.Owner{owner, other}[i%2]
		creations.Go(func() { made[i], errs[i] = world.Account.Create(t.Context(), asking, world.Spec) })
	}
	creations.Wait()
	var winner *cloud.Cluster
	var whose cloud.Owner
	for i, err := range errs {
		if err != nil {
			world.expect(t, err, cloud.NameTaken)
			continue
		}
		g.Expect(winner).To(gomega.BeNil(), "two creations of one name took effect")
		winner, whose = made[i], []cloud.Owner{owner, other}[i%2]
	}
	g.Expect(winner).NotTo(gomega.BeNil(), "no creation took effect")
	for _, asking := range []cloud.Owner{owner, other} {
		found, err := world.Account.Find(t.Context(), asking)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if asking != whose {
			g.Expect(found).To(gomega.BeNil(), "the cluster was made for the other owner")
			continue
		}
		g.Expect(found).To(gomega.HaveValue(gomega.HaveField("ID", winner.ID)))
	}
}

// If no ID is recorded, the operator ends a deletion when Find returns nil and the consistency window is over. So Find
// must return a cluster until it is gone.
func testFindWhileDeleting(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.await(t, world.create(t).ID)
	g.Expect(world.Account.Delete(t.Context(), made.ID)).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		found, err := world.Account.Find(t.Context(), owner)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		still, err := world.Account.Get(t.Context(), made.ID)
		if err == nil && found == nil { // Find ran before Get
			gomega.StopTrying(fmt.Sprintf("Find returns nil, and then Get returns the cluster, which is %q", still.State)).Now()
		}
		g.Expect(cloud.Is(err, cloud.NotFound)).To(gomega.BeTrue(), "the deletion has not ended")
	}).WithTimeout(timeout).Should(gomega.Succeed())
}
