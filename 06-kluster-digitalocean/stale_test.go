package main

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	klusterfake "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/fake"
)

// recordingAccount is a cloud that finds nothing, and records the changes that it is asked to make. Other calls panic.
type recordingAccount struct {
	cloud.CloudProvider
	changes []string
	// changing and err are what UpdatePools returns, and upgrading is what Upgrade returns.
	changing, upgrading bool
	err                 error
}

func (*recordingAccount) Find(context.Context, cloud.Owner) (*cloud.Cluster, error) { return nil, nil }

func (a *recordingAccount) Create(context.Context, cloud.Owner, cloud.Spec) (*cloud.Cluster, error) {
	a.changes = append(a.changes, "create")
	return foundCluster(cloud.StateProvisioning), nil
}

func (a *recordingAccount) UpdatePools(context.Context, *cloud.Cluster, []cloud.Pool) (bool, error) {
	a.changes = append(a.changes, "update pools")
	return a.changing, a.err
}

func (a *recordingAccount) Upgrade(_ context.Context, _ *cloud.Cluster, version string) (bool, error) {
	a.changes = append(a.changes, "upgrade to "+version)
	return a.upgrading, nil
}

func (a *recordingAccount) Delete(context.Context, string) error {
	a.changes = append(a.changes, "delete")
	return nil
}

// newActing returns a controller with everything that its act method needs. The API server has the given objects, and
// the Secret with the kubeconfig of storedKluster's cluster. The credentials in the Secret are valid for weeks.
func newActing(t *testing.T, live ...runtime.Object) *controller {
	secret := newKubeconfigSecret(storedKluster(), cloud.Kubeconfig{Content: []byte("kind: Config"), Expires: time.Now().Add(1000 * time.Hour)}, time.Now())
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	NewWithT(t).Expect(index.Add(secret)).To(Succeed())
	c := newHandlers(t)
	c.secrets = corelisters.NewSecretLister(index)
	c.clients = &clients{kube: kubefake.NewClientset([]runtime.Object{secret}...), kluster: klusterfake.NewClientset(live...)}
	return c
}

// After a change of leader, the cache may show a Kluster as it was minutes ago.
func TestAStaleKlusterChangesNothing(t *testing.T) {
	changed := func(kluster *klusterv1alpha1.Kluster, change func(*klusterv1alpha1.Kluster)) []runtime.Object {
		kluster.ResourceVersion = "31"
		change(kluster)
		return []runtime.Object{kluster}
	}
	//workshop:step 6.13a
	deleted := func() *klusterv1alpha1.Kluster {
		kluster := recordedKluster()
		kluster.DeletionTimestamp = new(metav1.Now())
		return kluster
	}
	tests := map[string]struct {
		// cached is what the cache shows, and live is what the API server has.
		cached *klusterv1alpha1.Kluster
		live   []runtime.Object
		// want lists the changes that the operator must request. If it is nil, the operator must request none, and
		// retry without logging an error.
		want []string
	}{
		"a Kluster is current, and has no cluster": {cached: pendingKluster(), live: []runtime.Object{pendingKluster()}, want: []string{"create"}},
		"a Kluster is current, and has a cluster":  {cached: recordedKluster(), live: []runtime.Object{recordedKluster()}, want: []string{"update pools", "upgrade to 1.36"}},
		//workshop:step 6.13a
		"a Kluster is current, and is being deleted": {cached: deleted(), live: []runtime.Object{deleted()}, want: []string{"delete"}},
		//workshop:step 6.13a
		"a deleted Kluster now has the policy Orphan":         {cached: deleted(), live: changed(deleted(), func(kluster *klusterv1alpha1.Kluster) { kluster.Spec.DeletionPolicy = klusterv1alpha1.DeletionOrphan })},
		"a Kluster is gone, and would get a cluster":          {cached: pendingKluster()},
		"a Kluster is gone, and had a cluster":                {cached: recordedKluster()},
		"a cluster was recorded, and is gone":                 {cached: pendingKluster(), live: changed(recordedKluster(), func(*klusterv1alpha1.Kluster) {})},
		"a pool was added that the cache does not show":       {cached: recordedKluster(), live: changed(recordedKluster(), func(kluster *klusterv1alpha1.Kluster) { kluster.Generation++ })},
		"a Kluster was deleted, and recreated under its name": {cached: pendingKluster(), live: changed(pendingKluster(), func(kluster *klusterv1alpha1.Kluster) { kluster.UID = "another" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newActing(t, test.live...)
			account := &recordingAccount{}
			observed := observation{cloud: account, account: "acme"}
			if externalName(test.cached) != "" {
				observed.cluster = foundCluster(cloud.StateRunning)
			}
			_, err := c.act(t.Context(), test.cached, observed)
			if test.want != nil {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(account.changes).To(Equal(test.want), "see act in reconcile.go")
				return
			}
			g.Expect(account.changes).To(BeEmpty(), "see checkFresh in metadata.go")
			g.Expect(isExpected(err)).To(BeTrue(), "the operator must retry without logging an error, found: %v", err)
		})
	}
}
