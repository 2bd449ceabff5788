package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

const (
	// specTimeout bounds each of this stage's own specs, except for two longer ones. Most of them take less than two
	// seconds.
	specTimeout = 30 * time.Second
	// convergeTimeout bounds how long the operator and the cloud may take to make one change.
	convergeTimeout = 15 * time.Second
	checkInterval   = 20 * time.Millisecond
	// quietTime is how long a spec checks that something does not happen. Within this time, an operator with
	// testOptions observes a cluster at least once, and usually retries what has failed.
	quietTime = 500 * time.Millisecond

	// These are paths in the cloud's API. In the path of a fault, * matches any ID.
	clustersPath = "/v2/kubernetes/clusters"
	clusterPath  = clustersPath + "/*"
)

// newNamespace creates a namespace for a spec, and in it two Secrets with the token of the namespace's account (see
// createTokens).
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := cluster.Namespace(ctx)
	Expect(createTokens(ctx, cluster.Client, namespace)).To(Succeed())
	return namespace
}

// newKluster returns a valid Kluster that does not exist yet.
func newKluster(namespace, name string) *klusterv1alpha1.Kluster {
	return &klusterv1alpha1.Kluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: klusterv1alpha1.KlusterSpec{
			Name: name, Region: "fra1", Version: "1.36",
			TokenSecret: klusterv1alpha1.TokenSecret{Name: "digitalocean", Key: "token"},
			NodePools:   []klusterv1alpha1.NodePool{{Name: "web", Size: "s-2vcpu-4gb", Count: 1}},
		},
	}
}

// create creates the Kluster that newKluster returns.
func create(ctx context.Context, namespace, name string) *klusterv1alpha1.Kluster {
	GinkgoHelper()
	kluster := newKluster(namespace, name)
	Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
	return kluster
}

func change(ctx context.Context, kluster *klusterv1alpha1.Kluster, edit func()) {
	GinkgoHelper()
	patch := client.MergeFrom(kluster.DeepCopy())
	edit()
	Expect(cluster.Client.Patch(ctx, kluster, patch)).To(Succeed())
}

// startOperator runs an operator until the returned function is called or the spec ends. At the end of the spec, a
// cleanup deletes the namespace's Klusters before the operator stops. The spec fails if a Kluster's cluster is left in
// the account, or if an event contains a secret.
func startOperator(options options) (stop func()) {
	GinkgoHelper()
	end, ended := runWith(nil, options)
	DeferCleanup(func(ctx SpecContext) { removeKlusters(ctx, options.namespace) }, NodeTimeout(specTimeout))
	return func() {
		GinkgoHelper()
		end()
		var err error
		Eventually(ended).WithTimeout(convergeTimeout).Should(Receive(&err), "run must end after the signal to stop")
		Expect(err).NotTo(HaveOccurred())
	}
}

func removeKlusters(ctx context.Context, namespace string) {
	GinkgoHelper()
	expectNoSecretInEvents(ctx, namespace)
	clouds.of(namespace).ClearFaults()
	Expect(cluster.Client.DeleteAllOf(ctx, &klusterv1alpha1.Kluster{}, client.InNamespace(namespace))).To(Succeed())
	eventually(ctx, func(g Gomega) {
		list := &klusterv1alpha1.KlusterList{}
		g.Expect(cluster.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		//workshop:until 6.13d for i := range list.Items { list.Items[i].Finalizers = nil; g.Expect(cluster.Client.Update(ctx, &list.Items[i])).To(Succeed()) }
		//workshop:until 6.13d for _, name := range []string{"digitalocean", "another"} { if secret := readSecret(ctx, g, namespace, name); secret != nil { secret.Finalizers = nil; g.Expect(cluster.Client.Update(ctx, secret)).To(Succeed()) } }
		g.Expect(list.Items).To(BeEmpty(), "every Kluster must be gone in the end, see delete in deletion.go")
	})
	//workshop:step 6.13d
	Expect(madeByKlusters(clouds.of(namespace))).To(BeEmpty(), "a cluster without a Kluster still costs money, see delete in deletion.go")
}

// runWith runs an operator whose requests to the API server go through wrap, unless wrap is nil. The operator ends when
// stop is called or the spec ends.
func runWith(wrap func(http.RoundTripper) http.RoundTripper, options options) (stop func(), ended chan error) {
	config := rest.CopyConfig(cluster.Config)
	if wrap != nil {
		config.Wrap(wrap)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		ended <- run(ctx, config, options)
	}()
	DeferCleanup(func(ctx SpecContext) {
		stop()
		Eventually(returned).WithContext(ctx).Should(BeClosed())
	}, NodeTimeout(specTimeout))
	return stop, ended
}

func eventually(ctx context.Context, check func(Gomega)) {
	GinkgoHelper()
	Eventually(check).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(checkInterval).Should(Succeed())
}

func consistently(ctx context.Context, check func(Gomega)) {
	GinkgoHelper()
	Consistently(check).WithContext(ctx).WithTimeout(quietTime).WithPolling(checkInterval).Should(Succeed())
}

// expectReason waits until the Ready condition has the reason and describes the Kluster's current generation. It checks
// that the condition's status fits the reason, and returns the condition.
func expectReason(ctx context.Context, kluster *klusterv1alpha1.Kluster, reason string) *metav1.Condition {
	GinkgoHelper()
	var ready *metav1.Condition
	eventually(ctx, func(g Gomega) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)
		g.Expect(apierrors.IsNotFound(err)).To(BeFalse(), "the Kluster is gone, and with it the ID of its cluster")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secretsIn(asJSON(kluster))).To(BeEmpty(), "the token belongs only in its Secret")
		ready = meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil(), "the Kluster has no condition Ready yet, see updateStatus in status.go")
		g.Expect(ready.Reason).To(Equal(reason), "Ready is %s: %s", ready.Status, ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(kluster.Generation))
	})
	status := metav1.ConditionFalse
	switch reason {
	case klusterv1alpha1.ReasonRunning:
		status = metav1.ConditionTrue
	case klusterv1alpha1.ReasonPaused, klusterv1alpha1.ReasonUnavailable:
		status = metav1.ConditionUnknown
	}
	Expect(ready.Status).To(Equal(status), ready.Message)
	return ready
}

// expectCondition checks a condition other than Ready, in a Kluster that has just been read.
func expectCondition(kluster *klusterv1alpha1.Kluster, kind string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Expect(meta.FindStatusCondition(kluster.Status.Conditions, kind)).To(HaveValue(And(
		HaveField("Status", status), HaveField("Reason", reason))), "see newStatus in status.go")
}

// expectOneCluster checks that one creation in the Kluster's account took effect, and that the account has exactly one
// cluster, which is the Kluster's.
func expectOneCluster(kluster *klusterv1alpha1.Kluster) {
	GinkgoHelper()
	account := clouds.of(kluster.Namespace)
	Expect(account.Effective("create cluster")).To(HaveLen(1), "exactly one creation must take effect, see act in reconcile.go")
	Expect(account.Clusters()).To(ConsistOf(And(
		HaveField("ID", kluster.Status.KlusterID),
		HaveField("Tags", ContainElement("kluster-uid:"+string(kluster.UID))))))
}

// expectDeleted deletes the Kluster, if it still exists, and waits until it is gone.
func expectDeleted(ctx context.Context, kluster *klusterv1alpha1.Kluster) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(cluster.Client.Delete(ctx, kluster))).To(Succeed())
	eventually(ctx, func(g Gomega) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), &klusterv1alpha1.Kluster{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Kluster is still there (error: %v)", err)
	})
}

// expectGone does the same as expectDeleted, and also expects the Kluster's cluster to be gone.
func expectGone(ctx context.Context, kluster *klusterv1alpha1.Kluster) {
	GinkgoHelper()
	expectDeleted(ctx, kluster)
	left := slices.DeleteFunc(madeByKlusters(clouds.of(kluster.Namespace)), func(tag string) bool { return tag != "kluster-uid:"+string(kluster.UID) })
	Expect(left).To(BeEmpty(), "a Kluster must stay until its cluster is gone, see delete in deletion.go")
}

// madeByKlusters returns the owner tags of the clusters in an account.
func madeByKlusters(account *doks.Emulator) (tags []string) {
	for _, found := range account.Clusters() {
		for _, tag := range found.Tags {
			if strings.HasPrefix(tag, "kluster-uid:") {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

// requests returns the requests in the account's journal that have one of these methods.
func requests(account *doks.Emulator, methods ...string) (found []doks.Entry) {
	for _, entry := range account.Journal() {
		if slices.Contains(methods, entry.Method) {
			found = append(found, entry)
		}
	}
	return found
}

func disturb(account *doks.Emulator, faults ...doks.Fault) {
	GinkgoHelper()
	for _, fault := range faults {
		Expect(account.AddFault(fault)).To(Succeed())
	}
}

// eventsOf returns the reasons of the events about a Kluster, each repeated as often as the event happened.
func eventsOf(ctx context.Context, g Gomega, kluster *klusterv1alpha1.Kluster) (reasons []string) {
	list := &eventsv1.EventList{}
	g.Expect(cluster.Client.List(ctx, list, client.InNamespace(kluster.Namespace))).To(Succeed())
	for _, event := range list.Items {
		if event.Regarding.UID == kluster.UID {
			reasons = append(reasons, event.Reason)
			if event.Series != nil {
				reasons = append(reasons, slices.Repeat([]string{event.Reason}, int(event.Series.Count)-1)...)
			}
		}
	}
	return reasons
}

// setToken writes a token into the Secret that newKluster names, and creates the Secret if it is missing.
func setToken(ctx context.Context, namespace, token string) {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "digitalocean"},
		Type:       klusterv1alpha1.TokenSecretType,
		Data:       map[string][]byte{"token": []byte(token)},
	}
	err := cluster.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		patch := client.RawPatch(types.MergePatchType, []byte(asJSON(map[string]any{"data": secret.Data})))
		err = cluster.Client.Patch(ctx, secret, patch)
	}
	Expect(err).NotTo(HaveOccurred())
}

func asJSON(object any) string {
	content, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
