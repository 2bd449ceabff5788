package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

var _ = Describe("the kubeconfig", func() {
	It("leads to the cluster, and is replaced before its credentials expire", func(ctx SpecContext) {
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

		clock.SetTime(now.Add(4 * 24 * time.Hour)) // less than two thirds of 7 days
		consistently(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, key, secret)).To(Succeed())
			g.Expect(secret.Data[kubeconfigKey]).To(Equal(first), "credentials that need no replacement yet must stay")
		})
		clock.SetTime(now.Add(5 * 24 * time.Hour))
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, key, secret)).To(Succeed())
			g.Expect(secret.Data[kubeconfigKey]).NotTo(Equal(first), "see validity in kubeconfig.go")
		})
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("does not overwrite a Secret that the Kluster does not control, and is written once the name is free", func(ctx SpecContext) {
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
		Expect(kluster.Status.KubeconfigSecret).To(BeEmpty(), "the status must not name someone else's Secret")
		Expect(clouds.of(namespace).Clusters()).To(BeEmpty(), "a cluster that can't be used must not be created, see create in reconcile.go")

		Expect(cluster.Client.Delete(ctx, theirs)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		made := readSecret(ctx, Default, namespace, "shop-kubeconfig")
		Expect(made.Data).To(HaveKeyWithValue(kubeconfigKey, ContainSubstring("kind: Config")))
		Expect(made.OwnerReferences).To(ConsistOf(And(HaveField("UID", kluster.UID), HaveField("BlockOwnerDeletion", BeNil()))),
			"in some clusters, blockOwnerDeletion requires another permission, see controllerReference in kubeconfig.go")
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("must have room: while a quota allows no Secret for it, the operator reports that, and creates no cluster", func(ctx SpecContext) {
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

	It("is not asked for while a quota leaves no room for its Secret, because credentials can't be revoked", func(ctx SpecContext) {
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

	It("is replaced, and the Secret's label is restored, without losing what others have put into the Secret", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		now := time.Now()
		clock := clocktesting.NewFakePassiveClock(now)
		options := testOptions(namespace)
		options.clock, options.observeInterval = clock, 100*time.Millisecond
		startOperator(options)
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		secret := readSecret(ctx, Default, namespace, "shop-kubeconfig")
		theirs := map[string]string{"theirs": "kept"}
		apply := func(fields *applycorev1.SecretApplyConfiguration) {
			GinkgoHelper()
			Expect(cluster.Client.Apply(ctx, fields, client.FieldOwner("someone-else"))).To(Succeed())
		}
		apply(applycorev1.Secret(secret.Name, namespace).WithLabels(theirs).WithAnnotations(theirs).WithData(map[string][]byte{"theirs": []byte("kept")}))
		expectKubeconfig := func(want any) {
			GinkgoHelper()
			eventually(ctx, func(g Gomega) {
				secret = readSecret(ctx, g, namespace, "shop-kubeconfig")
				g.Expect(secret.Labels).To(HaveKeyWithValue(managedByLabel, programName))
				g.Expect(secret.Data).To(HaveKeyWithValue(kubeconfigKey, want), "see ensureKubeconfig in kubeconfig.go")
			})
		}
		expectTheirs := func() {
			GinkgoHelper()
			Expect(secret.Labels).To(HaveKeyWithValue("theirs", "kept"))
			Expect(secret.Annotations).To(HaveKeyWithValue("theirs", "kept"))
			Expect(secret.Data).To(HaveKeyWithValue("theirs", []byte("kept")))
		}

		first := secret.Data[kubeconfigKey]
		clock.SetTime(now.Add(5 * 24 * time.Hour)) // more than two thirds of 7 days
		expectKubeconfig(Not(Equal(first)))
		expectTheirs()
		second := secret.Data[kubeconfigKey]
		labelled := secret.DeepCopy()
		delete(secret.Labels, managedByLabel)
		Expect(cluster.Client.Patch(ctx, secret, client.MergeFrom(labelled))).To(Succeed())
		expectKubeconfig(second)
		expectTheirs()

		apply(applycorev1.Secret(secret.Name, namespace))
		secret = readSecret(ctx, Default, namespace, "shop-kubeconfig")
		Expect(secret.Labels).NotTo(HaveKey("theirs"), "the operator must not own this label, see ownedFields in kubeconfig.go")
		Expect(secret.Annotations).NotTo(HaveKey("theirs"))
		Expect(secret.Data).To(Equal(map[string][]byte{kubeconfigKey: second}))
	}, SpecTimeout(specTimeout))

	DescribeTable("is not written after a change that the operator has not seen:", func(ctx SpecContext, exists bool, meanwhile func(context.Context, *corev1.Secret) error) {
		kluster := create(ctx, cluster.Namespace(ctx), "shop") // if the owner did not exist, Kubernetes would delete the Secret
		clients, err := newClients(cluster.Config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(clients.close)
		c := &controller{clients: clients}
		write := func(found *corev1.Secret, content string) error {
			kubeconfig := cloud.Kubeconfig{Content: []byte(content), Expires: time.Now().Add(time.Hour)}
			return c.writeKubeconfig(ctx, found, newKubeconfigSecret(kluster, kubeconfig, time.Now()))
		}
		var found *corev1.Secret
		if exists {
			Expect(write(nil, "first")).To(Succeed())
			found = readSecret(ctx, Default, kluster.Namespace, "shop-kubeconfig")
		}
		secret := newKubeconfigSecret(kluster, cloud.Kubeconfig{Content: []byte("theirs")}, time.Now())
		Expect(meanwhile(ctx, secret)).To(Succeed())
		before := readSecret(ctx, Default, kluster.Namespace, "shop-kubeconfig")
		err = write(found, "second")
		Expect(isExpected(err)).To(BeTrue(), "the operator must retry without logging an error, found: %v", err)
		Expect(readSecret(ctx, Default, kluster.Namespace, "shop-kubeconfig")).To(Equal(before), "see writeKubeconfig in kubeconfig.go")
	},
		Entry("someone has created a Secret of that name", false, createSecret, SpecTimeout(specTimeout)),
		Entry("the Secret has changed", true, func(ctx context.Context, secret *corev1.Secret) error {
			return cluster.Client.Update(ctx, secret)
		}, SpecTimeout(specTimeout)),
		Entry("the Secret has been deleted", true, deleteSecret, SpecTimeout(specTimeout)),
		Entry("the Secret has been deleted and created by someone else", true, func(ctx context.Context, secret *corev1.Secret) error {
			return errors.Join(deleteSecret(ctx, secret.DeepCopy()), createSecret(ctx, secret))
		}, SpecTimeout(specTimeout)),
	)
})

func createSecret(ctx context.Context, secret *corev1.Secret) error {
	return cluster.Client.Create(ctx, secret)
}

func deleteSecret(ctx context.Context, secret *corev1.Secret) error {
	return cluster.Client.Delete(ctx, secret)
}

// fillNamespace sets a quota of two Secrets, which those with tokens use up, and waits until it is in effect.
func fillNamespace(ctx context.Context, namespace string) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("2")}},
	}
	Expect(cluster.Client.Create(ctx, quota)).To(Succeed())
	eventually(ctx, func(g Gomega) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
		g.Expect(quota.Status.Used).NotTo(BeEmpty(), "the quota is not in effect yet")
	})
	return quota
}

func TestFindKubeconfig(t *testing.T) {
	ours := newKubeconfigSecret(storedKluster(), cloud.Kubeconfig{Content: []byte("kind: Config")}, time.Now())
	changed := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := ours.DeepCopy()
		change(secret)
		return secret
	}
	tests := map[string]struct {
		// cached is the Secret in the cache, and stored is the one on the API server. Each is nil if there is none.
		cached, stored *corev1.Secret
		// refusal is the error that a get request returns, or nil if it succeeds.
		refusal error
		// wantTaken means that findKubeconfig must return the error with ReasonSecretTaken, because the Kluster does not
		// control the Secret. wantError means that it must return any other error.
		wantFound, wantTaken, wantError bool
	}{
		"there is none":                               {},
		"the cache has it":                            {cached: ours, refusal: errors.New("the API server must not be asked"), wantFound: true},
		"only the API server has it":                  {stored: ours, wantFound: true},
		"the API server is away":                      {refusal: errors.New("the API server is away"), wantError: true},
		"it has no owner":                             {stored: changed(func(secret *corev1.Secret) { secret.OwnerReferences = nil }), wantTaken: true},
		"it has no controller":                        {stored: changed(func(secret *corev1.Secret) { secret.OwnerReferences[0].Controller = nil }), wantTaken: true},
		"it belongs to a former Kluster of this name": {cached: changed(func(secret *corev1.Secret) { secret.OwnerReferences[0].UID = "former" }), wantTaken: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if test.cached != nil {
				g.Expect(index.Add(test.cached)).To(Succeed())
			}
			kube := kubefake.NewClientset()
			if test.stored != nil {
				g.Expect(kube.Tracker().Add(test.stored)).To(Succeed())
			}
			kube.PrependReactor("get", "secrets", failing(&test.refusal))
			c := &controller{clients: &clients{kube: kube}, secrets: corelisters.NewSecretLister(index)}
			found, err := c.findKubeconfig(t.Context(), storedKluster())
			blocking, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(Equal(test.wantTaken), "the name is in use if this Kluster does not control the Secret; found the error %v, see findKubeconfig in kubeconfig.go", err)
			if isBlocked {
				g.Expect(blocking.reason).To(Equal(klusterv1alpha1.ReasonSecretTaken))
				return
			}
			g.Expect(err != nil).To(Equal(test.wantError), "found the error %v, see findKubeconfig in kubeconfig.go", err)
			g.Expect(found != nil).To(Equal(test.wantFound), "the Secret must be returned if there is one, see findKubeconfig in kubeconfig.go")
		})
	}
}

func TestCheckKubeconfig(t *testing.T) {
	kluster := storedKluster()
	ours := newKubeconfigSecret(kluster, cloud.Kubeconfig{Content: []byte("kind: Config")}, time.Now())
	theirs := ours.DeepCopy()
	theirs.OwnerReferences = nil
	tests := map[string]struct {
		// stored is the Secret with the kubeconfig's name on the API server, or nil if there is none. The cache is empty.
		stored *corev1.Secret
		// answer is the API server's error for a request to create the Secret, or nil if it accepts the request.
		answer error
		// wantReason is the reason of the blockedError, or "" if there is none.
		wantReason string
	}{
		"there is no Secret":           {},
		"a Secret of that name exists": {stored: theirs, wantReason: klusterv1alpha1.ReasonSecretTaken},
		"a quota refuses the Secret": {
			answer:     apierrors.NewForbidden(corev1.Resource("secrets"), ours.Name, errors.New("a quota")),
			wantReason: klusterv1alpha1.ReasonSecretRefused,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTrial(t, pendingKluster())
			secrets := 1 // the Secret with the token
			if test.stored != nil {
				secrets++
				_, err := r.kube.CoreV1().Secrets(r.namespace).Create(t.Context(), test.stored, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
			}
			if test.answer != nil {
				r.kube.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.answer })
			}
			account := &recordingAccount{}
			_, err := r.create(silent(t.Context()), pendingKluster(), observation{cloud: account, account: "acme"})
			stored, listErr := r.kube.CoreV1().Secrets(r.namespace).List(t.Context(), metav1.ListOptions{})
			g.Expect(listErr).NotTo(HaveOccurred())
			g.Expect(stored.Items).To(HaveLen(secrets), "a dry run must store nothing, see tryKubeconfig in kubeconfig.go")
			if test.wantReason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(account.changes).To(ConsistOf("create"))
				g.Expect(r.kube.Actions()).To(ContainElement(HaveField("Verb", "create")), "before it creates a cluster, the operator must test whether it can write the Secret, see writeKubeconfig in kubeconfig.go")
				g.Expect(fieldManagers(r.kube.Actions())).To(ConsistOf(programName), "the request must name programName as its field manager, see writeKubeconfig in kubeconfig.go")
				return
			}
			g.Expect(account.changes).To(BeEmpty(), "without its kubeconfig a cluster is of no use: it must not be created, see create in reconcile.go")
			blocking, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(BeTrue(), "expected %s, found: %v, see findKubeconfig and writeKubeconfig in kubeconfig.go", test.wantReason, err)
			g.Expect(blocking.reason).To(Equal(test.wantReason))
		})
	}
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
		"its refresh time is gone":     {change: func(secret *corev1.Secret) { delete(secret.Annotations, refreshAnnotation) }},
		"its refresh time is invalid":  {change: func(secret *corev1.Secret) { secret.Annotations[refreshAnnotation] = "soon" }},
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

func TestCredentialsAreReplacedInTime(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	c := newActing(t, kluster)
	secret, err := c.secrets.Secrets(kluster.Namespace).Get(kubeconfigName(kluster))
	g.Expect(err).NotTo(HaveOccurred())
	refresh, err := time.Parse(time.RFC3339, secret.Annotations[refreshAnnotation])
	g.Expect(err).NotTo(HaveOccurred())
	c.options.clock = clocktesting.NewFakePassiveClock(refresh.Add(-time.Minute))
	observed := observedCluster(cloud.StateRunning)
	observed.cloud = &recordingAccount{}
	found, err := c.act(t.Context(), kluster, observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.reason).To(Equal(klusterv1alpha1.ReasonRunning))
	g.Expect(found.requeueAfter).To(Equal(time.Minute), "no event announces that credentials expire, see update in reconcile.go")
}

// storedKluster returns a Kluster as it is stored on the API server.
func storedKluster() *klusterv1alpha1.Kluster {
	kluster := newKluster("shop", "front")
	kluster.UID, kluster.ResourceVersion, kluster.Generation = "uid-of-front", "30", 3
	kluster.Finalizers = []string{klusterv1alpha1.Finalizer}
	return kluster
}
