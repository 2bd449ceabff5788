// Package cloudtest contains the tests that every [cloud.CloudProvider] must pass. They test the contract that the
// operator relies on, so an implementation that passes them can replace DigitalOcean's.
package cloudtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

// timeout bounds how long the cloud may take for one change.
const timeout = 10 * time.Second

// World is a cloud with an empty account, and several tokens that tests use with it. Creating or deleting a cluster
// takes a moment, so that the tests can observe the states in between.
type World struct {
	// Account has all permissions, ReadOnly can only read, Narrow can't read its account's identity, and Stranger has a
	// token that the cloud does not know.
	Account, ReadOnly, Narrow, Stranger cloud.CloudProvider
	// Neighbour has all permissions in another account.
	Neighbour cloud.CloudProvider
	// Tokens lists all tokens. No error may contain one.
	Tokens []string
	// Spec is a spec that the cloud accepts. It has an origin, and one pool without labels, taints or autoscale. Its
	// version is a slug.
	Spec cloud.Spec
	// OtherSize is a machine size that the cloud has, other than that of Spec's pool.
	OtherSize string
	// Minor is the minor version to which Spec's version belongs. Newer is the slug of a version to which the cloud can
	// upgrade Spec's.
	Minor, Newer string
	// Refused is a spec that the cloud never accepts.
	Refused cloud.Spec
	// Fail makes the next request fail with Busy or Unavailable.
	Fail func(problem cloud.Problem)
	// Lag hides new clusters from Find and Get, as an eventually consistent cloud may, until end is called.
	Lag func() (end func())
	// Retag replaces a cluster's owner tags, as a person may do in the cloud's console.
	Retag func(id string, owners ...cloud.Owner)
}

// Run runs the tests, each with a new world.
func Run(t *testing.T, open func(*testing.T) World) {
	tests := map[string]func(*testing.T, World){
		"an empty account has no cluster":                         testEmpty,
		"a cluster is found by its owner only":                    testFind,
		"a name is taken for the same owner and for others":       testNameTaken,
		"a missing cluster is not found":                          testMissing,
		"a new cluster that is not shown yet has taken its name":  testLag,
		"an owner can be changed in the cloud":                    testRetag,
		"only one of two simultaneous creations takes effect":     testConcurrentCreates,
		"a deletion can be repeated, and frees the name":          testDelete,
		"a cluster is found until its deletion has ended":         testFindWhileDeleting,
		"versions start an upgrade only if they are later":        testUpgrade,
		"a minor version or latest is enough to create a cluster": testVersions,
		"a kubeconfig comes with its expiry time":                 testKubeconfig,
		"an account has one identity for all its tokens":          testIdentity,
		"another account's clusters are not found":                testNeighbour,
		"a wrong token is unauthorized":                           testStranger,
		"a read-only token can only read":                         testReadOnly,
		"a refused spec creates nothing":                          testRefused,
		"a pool's machine size can't be changed":                  testOtherSize,
		"too many requests are reported as busy":                  testBusy,
		"an unavailable cloud creates nothing":                    testUnavailable,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	for name, test := range poolTests() {
		t.Run("node pools: "+name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var owner, other = cloud.Owner{UID: "0b5c0a52-0000-4000-8000-000000000001"}, cloud.Owner{UID: "0b5c0a52-0000-4000-8000-000000000002"}

func testEmpty(t *testing.T, world World) {
	found, err := world.Account.Find(t.Context(), owner)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	gomega.NewWithT(t).Expect(found).To(gomega.BeNil())
}

func testMissing(t *testing.T, world World) {
	made := world.create(t) // an account that has clusters must not return one of them
	for _, id := range []string{"", "0b5c0a52-0000-4000-8000-000000000003"} {
		_, err := world.Account.Get(t.Context(), id)
		world.expect(t, err, cloud.NotFound)
		world.expect(t, world.Account.Delete(t.Context(), id), cloud.NotFound)
		_, err = world.Account.Kubeconfig(t.Context(), &cloud.Cluster{ID: id})
		world.expect(t, err, cloud.NotFound)
	}
	world.await(t, made.ID)
}

func testDelete(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.create(t)
	g.Expect(world.Account.Delete(t.Context(), made.ID)).To(gomega.Succeed())
	if err := world.Account.Delete(t.Context(), made.ID); err != nil {
		world.expect(t, err, cloud.NotFound)
	}
	g.Eventually(func() bool {
		_, err := world.Account.Get(t.Context(), made.ID)
		return cloud.Is(err, cloud.NotFound)
	}).WithTimeout(timeout).Should(gomega.BeTrue(), "a deletion must end in NotFound")
	found, err := world.Account.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.BeNil())
	world.expect(t, world.Account.Delete(t.Context(), made.ID), cloud.NotFound)
	g.Expect(world.create(t).ID).NotTo(gomega.Equal(made.ID), "an ID must not be used again")
}

func testUpgrade(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	running := world.await(t, world.create(t).ID)
	for _, version := range []string{world.Spec.Version, world.Minor, "latest"} {
		changed, err := world.Account.Upgrade(t.Context(), running, version)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(changed).To(gomega.BeFalse(), "%s satisfies %s, so no upgrade may start", running.Version, version)
	}
	changed, err := world.Account.Upgrade(t.Context(), running, world.Newer)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(changed).To(gomega.BeTrue())
	g.Eventually(func() string { return world.await(t, running.ID).Version }).WithTimeout(timeout).Should(gomega.Equal(world.Newer))
	_, err = world.Account.Upgrade(t.Context(), world.await(t, running.ID), world.Spec.Version)
	world.expect(t, err, cloud.Refused)
}

func testVersions(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	for i, version := range []string{world.Minor, "latest"} {
		spec := world.Spec
		spec.Name, spec.Version = spec.Name+"-"+strings.Repeat("x", i+1), version
		made, err := world.Account.Create(t.Context(), owner, spec)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		running := world.await(t, made.ID)
		g.Expect(running.Version).NotTo(gomega.Equal(version), "the version of a cluster must be a slug")
		changed, err := world.Account.Upgrade(t.Context(), running, version)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(changed).To(gomega.BeFalse(), "%s satisfies %s, so no upgrade may start", running.Version, version)
	}
}

func testKubeconfig(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	running := world.await(t, world.create(t).ID)
	kubeconfig, err := world.Account.Kubeconfig(t.Context(), running)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(kubeconfig.Content)).To(gomega.And(gomega.ContainSubstring("kind: Config"), gomega.ContainSubstring(running.Endpoint)))
	g.Expect(kubeconfig.Expires).To(gomega.BeTemporally(">", time.Now().Add(time.Hour)))
}

func testIdentity(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	identity, err := world.Account.Identity(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(identity).NotTo(gomega.BeEmpty())
	same, err := world.ReadOnly.Identity(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(same).To(gomega.Equal(identity), "the identity must be the account's, not the token's")
	another, err := world.Neighbour.Identity(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(another).NotTo(gomega.Or(gomega.Equal(identity), gomega.BeEmpty()))
	for _, account := range []cloud.CloudProvider{world.Narrow, world.Stranger} {
		_, err = account.Identity(t.Context())
		world.expect(t, err, cloud.Unauthorized)
	}
	world.Fail(cloud.Unavailable)
	_, err = world.Account.Identity(t.Context())
	world.expect(t, err, cloud.Unavailable)
}

// Another account's responses look like those at the end of a deletion, so the operator checks the account's identity.
func testNeighbour(t *testing.T, world World) {
	made := world.create(t)
	_, err := world.Neighbour.Get(t.Context(), made.ID)
	world.expect(t, err, cloud.NotFound)
	world.expect(t, world.Neighbour.Delete(t.Context(), made.ID), cloud.NotFound)
	world.await(t, made.ID)
}

func testStranger(t *testing.T, world World) {
	made := world.create(t)
	world.expectNothing(t, world.Stranger, made)
	_, err := world.Stranger.Find(t.Context(), owner)
	world.expect(t, err, cloud.Unauthorized)
	_, err = world.Stranger.Get(t.Context(), made.ID)
	world.expect(t, err, cloud.Unauthorized)
}

func testReadOnly(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	made := world.create(t)
	world.expectNothing(t, world.ReadOnly, made)
	found, err := world.ReadOnly.Find(t.Context(), owner)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.HaveValue(gomega.HaveField("ID", made.ID)))
}

// expectNothing tries every change, and expects the cloud to authorize none.
func (w World) expectNothing(t *testing.T, account cloud.CloudProvider, made *cloud.Cluster) {
	t.Helper()
	running := w.await(t, made.ID)
	_, err := account.Create(t.Context(), other, w.Spec)
	w.expect(t, err, cloud.Unauthorized)
	w.expect(t, account.Delete(t.Context(), made.ID), cloud.Unauthorized)
	more := append(slices.Clone(w.Spec.Pools), renamed(w.Spec.Pools[0], "more"))
	_, err = account.UpdatePools(t.Context(), running, more)
	w.expect(t, err, cloud.Unauthorized)
	_, err = account.Upgrade(t.Context(), running, w.Newer)
	w.expect(t, err, cloud.Unauthorized)
}

func testRefused(t *testing.T, world World) {
	_, err := world.Account.Create(t.Context(), owner, world.Refused)
	world.expect(t, err, cloud.Refused)
	testEmpty(t, world)
}

func testOtherSize(t *testing.T, world World) {
	g := gomega.NewWithT(t)
	running := world.await(t, world.create(t).ID)
	wanted := slices.Clone(world.Spec.Pools)
	wanted[0].Size = world.OtherSize
	_, err := world.Account.UpdatePools(t.Context(), running, wanted)
	world.expect(t, err, cloud.Refused)
	g.Expect(wishes(world.await(t, running.ID).Pools)).To(gomega.Equal(world.Spec.Pools), "a refused request must change nothing")
}

func testBusy(t *testing.T, world World) {
	world.Fail(cloud.Busy)
	_, err := world.Account.Find(t.Context(), owner)
	world.expect(t, err, cloud.Busy)
}

func testUnavailable(t *testing.T, world World) {
	world.Fail(cloud.Unavailable)
	_, err := world.Account.Create(t.Context(), owner, world.Spec)
	world.expect(t, err, cloud.Unavailable)
	testEmpty(t, world)
}
