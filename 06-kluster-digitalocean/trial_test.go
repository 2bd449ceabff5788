package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	klusterfake "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/fake"
	listers "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/listers/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// trial reconciles one Kluster without a control plane. client-go's fakes replace the API server, and the emulator
// replaces the cloud.
type trial struct {
	*controller
	cloud     *doks.Emulator
	kube      *kubefake.Clientset
	api       *klusterfake.Clientset
	inCache   cache.Indexer
	namespace string
	name      string
}

// newTrial returns a trial in which the API server has the Kluster and its token's Secret.
func newTrial(t *testing.T, kluster *klusterv1alpha1.Kluster) *trial {
	t.Helper()
	g := NewWithT(t)
	emulator, err := doks.New(doks.Options{Tokens: []string{tokenFor(kluster.Namespace)}, Team: "0b5c0a52-0000-4000-8000-0000000000bb"})
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(emulator)
	t.Cleanup(server.Close)
	r := &trial{
		controller: newHandlers(t), cloud: emulator, namespace: kluster.Namespace, name: kluster.Name,
		kube: kubefake.NewClientset(tokenSecret(kluster)), api: klusterfake.NewClientset(kluster),
		inCache: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	r.options.cloud = cloudOptions{url: server.URL, qps: 1000, burst: 1000}
	r.options.consistencyWindow = 0
	r.openAccount, r.disconnect = r.options.cloud.newConnector()
	t.Cleanup(r.disconnect)
	r.klusters = listers.NewKlusterLister(r.inCache)
	r.secrets = corelisters.NewSecretLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
	r.recorder = events.NewFakeRecorder(100)
	r.kube.PrependReactor("create", "secrets", ignoreDryRuns)
	r.clients = &clients{kube: r.kube, kluster: r.api, metadata: metadataOf(r.kube)}
	return r
}

// tokenSecret returns the Secret that the Kluster names, with the token of its namespace's account.
func tokenSecret(kluster *klusterv1alpha1.Kluster) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: kluster.Namespace, Name: kluster.Spec.TokenSecret.Name, UID: "uid-of-token"},
		Type:       klusterv1alpha1.TokenSecretType,
		Data:       map[string][]byte{kluster.Spec.TokenSecret.Key: []byte(tokenFor(kluster.Namespace) + "\n")},
	}
}

// ignoreDryRuns keeps the fake client from storing what a dry run creates.
func ignoreDryRuns(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateActionImpl)
	return len(create.CreateOptions.DryRun) > 0, create.GetObject(), nil
}

// metadataOf returns a fake metadata client that lists the given client's Secrets.
func metadataOf(kube *kubefake.Clientset) *metadatafake.FakeMetadataClient {
	scheme := metadatafake.NewTestScheme()
	_ = metav1.AddMetaToScheme(scheme) // this fails only if a type is registered twice
	client := metadatafake.NewSimpleMetadataClient(scheme)
	client.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		secrets, err := kube.CoreV1().Secrets(action.GetNamespace()).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return true, nil, err
		}
		list := &metav1.List{}
		for _, secret := range secrets.Items {
			list.Items = append(list.Items, runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}})
		}
		return true, list, nil
	})
	return client
}

// step reconciles the Kluster once, with a cache that shows its current state. It returns the error that a worker would
// retry.
func (r *trial) step(t *testing.T) error {
	t.Helper()
	NewWithT(t).Expect(r.inCache.Replace([]any{r.live(t)}, "")).To(Succeed())
	_, err := r.reconcile(silent(t.Context()), cache.NewObjectName(r.namespace, r.name))
	return err
}

// silent returns a context whose logger drops all messages.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard))))
}

// steps reconciles the Kluster often enough for the operator to do everything that it can, and returns the last error.
func (r *trial) steps(t *testing.T) (last error) {
	t.Helper()
	for range 10 {
		last = r.step(t)
	}
	return last
}

// live returns the Kluster as it is on the API server.
func (r *trial) live(t *testing.T) *klusterv1alpha1.Kluster {
	t.Helper()
	kluster, err := r.api.Inspirit941V1alpha1().Klusters(r.namespace).Get(t.Context(), r.name, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return kluster
}

// change edits the Kluster on the API server. The fake accepts changes that a real API server would reject, such as a
// new deletion timestamp.
func (r *trial) change(t *testing.T, edit func(*klusterv1alpha1.Kluster)) {
	t.Helper()
	kluster := r.live(t)
	edit(kluster)
	_, err := r.api.Inspirit941V1alpha1().Klusters(r.namespace).Update(t.Context(), kluster, metav1.UpdateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// secret returns the token's Secret as it is on the API server.
func (r *trial) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := r.kube.CoreV1().Secrets(r.namespace).Get(t.Context(), "digitalocean", metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return secret
}

// reason returns the reason of the Ready condition, or "" if there is none.
func (r *trial) reason(t *testing.T) string {
	t.Helper()
	return r.ready(t).Reason
}

// ready returns the Ready condition, or an empty condition if there is none.
func (r *trial) ready(t *testing.T) metav1.Condition {
	t.Helper()
	if ready := meta.FindStatusCondition(r.live(t).Status.Conditions, klusterv1alpha1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// creations returns the lines in the cloud's journal about cluster creations that took effect.
func (r *trial) creations() (lines []string) {
	for _, entry := range r.cloud.Effective("create cluster") {
		lines = append(lines, fmt.Sprint(entry))
	}
	return lines
}

// patches returns the patches among the actions, in order.
func patches(actions []clienttesting.Action) (found []string) {
	for _, action := range actions {
		if patch, is := action.(clienttesting.PatchAction); is {
			found = append(found, string(patch.GetPatch()))
		}
	}
	return slices.Clip(found)
}

// fieldManagers returns the field managers of the actions that create, patch or update an object, in order.
func fieldManagers(actions []clienttesting.Action) (found []string) {
	for _, action := range actions {
		switch write := action.(type) {
		case clienttesting.CreateActionImpl:
			found = append(found, write.CreateOptions.FieldManager)
		case clienttesting.PatchActionImpl:
			found = append(found, write.PatchOptions.FieldManager)
		case clienttesting.UpdateActionImpl:
			found = append(found, write.UpdateOptions.FieldManager)
		}
	}
	return found
}
