package main

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

var _ = Describe("the kubeconfig", func() {
	It("leads to the cluster, and is replaced before its credentials end", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		now := time.Now()
		clock := clocktesting.NewFakePassiveClock(now)
		options := testOptions(namespace)
		options.clock, options.observeInterval = clock, 100*time.Millisecond
		startOperator(options)
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: kluster.Status.KubeconfigSecret}
		Expect(cluster.Client.Get(ctx, key, secret)).To(Succeed())
		first := secret.Data[kubeconfigKey]
		config, err := clientcmd.RESTConfigFromKubeConfig(first)
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Host).To(Equal(kluster.Status.Endpoint))

		clock.SetTime(now.Add(4 * 24 * time.Hour)) // of 7 days
		consistently(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, key, secret)).To(Succeed())
			g.Expect(secret.Data[kubeconfigKey]).To(Equal(first), "credentials that are still good stay")
		})
		clock.SetTime(now.Add(5 * 24 * time.Hour))
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, key, secret)).To(Succeed())
			g.Expect(secret.Data[kubeconfigKey]).NotTo(Equal(first), "see validity in kubeconfig.go")
		})
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("leaves a Secret of its name alone that it does not control, and takes the name when it is free", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		theirs := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-kubeconfig"},
			Data:       map[string][]byte{kubeconfigKey: []byte("theirs")},
		}
		Expect(cluster.Client.Create(ctx, theirs)).To(Succeed())
		kluster := create(ctx, namespace, "shop")
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonSecretTaken)
		Expect(ready.Message).To(ContainSubstring(`Secret "shop-kubeconfig"`))
		found := readSecret(ctx, Default, namespace, "shop-kubeconfig")
		Expect(found).To(Equal(theirs), "see findKubeconfig in kubeconfig.go")
		Expect(kluster.Status.KubeconfigSecret).To(BeEmpty(), "it must not pass for the Kluster's")
		Expect(clouds.of(namespace).Clusters()).To(BeEmpty(), "a cluster that can't be used must not be created, see create in reconcile.go")

		Expect(cluster.Client.Delete(ctx, theirs)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		made := readSecret(ctx, Default, namespace, "shop-kubeconfig")
		Expect(made.Data).To(HaveKeyWithValue(kubeconfigKey, ContainSubstring("kind: Config")))
		Expect(made.OwnerReferences).To(ConsistOf(And(HaveField("UID", kluster.UID), HaveField("BlockOwnerDeletion", BeNil()))),
			"some clusters ask for one more right to block a deletion, see controllerReference in kubeconfig.go")
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("is reported when a quota keeps its Secret out, before a cluster is paid for, and made when there is room", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		quota := fillNamespace(ctx, namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonSecretRefused)
		Expect(clouds.of(namespace).Clusters()).To(BeEmpty(), "see checkKubeconfig in kubeconfig.go")
		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("is not asked for while a quota keeps its Secret out: the credentials could not be taken back", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		quota := fillNamespace(ctx, namespace)
		Expect(cluster.Client.Delete(ctx, readSecret(ctx, Default, namespace, "shop-kubeconfig"))).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonSecretRefused)
		asked := func() (count int) {
			for _, entry := range account.Journal() {
				if strings.Contains(entry.Path, "/kubeconfig") {
					count++
				}
			}
			return count
		}
		consistently(ctx, func(g Gomega) { g.Expect(asked()).To(Equal(1), "see tryKubeconfig in kubeconfig.go") })
		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(asked()).To(Equal(2))
	}, SpecTimeout(specTimeout))
})

// fillNamespace leaves no room for a Secret beside the two with tokens.
func fillNamespace(ctx context.Context, namespace string) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("2")}},
	}
	Expect(cluster.Client.Create(ctx, quota)).To(Succeed())
	eventually(ctx, func(g Gomega) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
		g.Expect(quota.Status.Used).NotTo(BeEmpty(), "the quota does not count yet")
	})
	return quota
}

func TestValidity(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kubeconfig := cloud.Kubeconfig{Content: []byte("kind: Config"), Expires: now.Add(3 * time.Hour)}
	tests := map[string]struct {
		change func(*corev1.Secret)
		after  time.Duration
		want   bool
	}{
		"fresh":                        {want: true},
		"shortly before two thirds":    {after: 2*time.Hour - time.Second, want: true},
		"after two thirds of its time": {after: 2 * time.Hour},
		"it was edited":                {change: func(secret *corev1.Secret) { secret.Data[kubeconfigKey] = []byte("kind: Pod") }},
		"its key is gone":              {change: func(secret *corev1.Secret) { delete(secret.Data, kubeconfigKey) }},
		"its digest is gone":           {change: func(secret *corev1.Secret) { delete(secret.Annotations, digestAnnotation) }},
		"its time is gone":             {change: func(secret *corev1.Secret) { delete(secret.Annotations, refreshAnnotation) }},
		"its time is none":             {change: func(secret *corev1.Secret) { secret.Annotations[refreshAnnotation] = "soon" }},
		"another key was added":        {change: func(secret *corev1.Secret) { secret.Data["theirs"] = []byte("x") }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secret := newKubeconfigSecret(storedKluster(), kubeconfig, now)
			if test.change != nil {
				test.change(secret)
			}
			left, valid := validity(secret, now.Add(test.after))
			g.Expect(valid).To(Equal(test.want), "see validity in kubeconfig.go")
			if test.want {
				g.Expect(left).To(Equal(2*time.Hour - test.after))
			}
		})
	}
	_, valid := validity(nil, now)
	NewWithT(t).Expect(valid).To(BeFalse(), "there is no Secret")
}

func TestMerged(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	wanted := newKubeconfigSecret(storedKluster(), cloud.Kubeconfig{Content: []byte("new"), Expires: now.Add(time.Hour)}, now)
	found := wanted.DeepCopy()
	found.ResourceVersion = "7"
	found.Labels = map[string]string{"theirs": "kept"}
	found.Annotations = map[string]string{"theirs": "kept"}
	found.Data = map[string][]byte{"theirs": []byte("kept"), kubeconfigKey: []byte("old")}
	before := found.DeepCopy()

	changed := merged(found, wanted)
	g.Expect(found).To(Equal(before), "what the cache holds must not change")
	g.Expect(changed.ResourceVersion).To(Equal("7"), "so that the API server refuses a stale copy")
	g.Expect(changed.Labels).To(And(HaveKeyWithValue("theirs", "kept"), HaveKeyWithValue(managedByLabel, programName)))
	g.Expect(changed.Annotations).To(And(HaveKeyWithValue("theirs", "kept"), HaveKey(refreshAnnotation), HaveKey(digestAnnotation)))
	g.Expect(changed.Data).To(Equal(map[string][]byte{"theirs": []byte("kept"), kubeconfigKey: []byte("new")}))
	found.Data = nil
	g.Expect(merged(found, wanted).Data).To(HaveKey(kubeconfigKey))
}

// storedKluster is one as the API server has it.
func storedKluster() *klusterv1alpha1.Kluster {
	kluster := newKluster("shop", "front")
	kluster.UID, kluster.ResourceVersion, kluster.Generation = "uid-of-front", "30", 3
	kluster.Finalizers = []string{klusterv1alpha1.Finalizer}
	return kluster
}
