package greeting

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// newScheme returns a scheme with Kubernetes' own kinds and ours.
func newScheme() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(kinds))
	utilruntime.Must(AddToScheme(kinds))
	return kinds
}

// newGreeting returns a valid Greeting that has not been created yet.
func newGreeting(namespace string) *Greeting {
	return &Greeting{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ada"},
		Spec:       GreetingSpec{Name: "Ada", Language: "de"},
	}
}

// newFake returns a builder for clients that keep the objects in memory, without a server.
func newFake(objects ...client.Object) *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&Greeting{}).WithObjects(objects...)
}

// reconcile calls Reconcile once for the Greeting, with a recorder that keeps up to ten Events.
func reconcile(ctx context.Context, c client.Client, greeting *Greeting) (*events.FakeRecorder, error) {
	recorder := events.NewFakeRecorder(10)
	reconciler := &Reconciler{Client: c, Recorder: recorder}
	_, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(greeting)})
	return recorder, err
}

func TestReconcileCreatesTheConfigMap(t *testing.T) {
	g := NewWithT(t)
	greeting := newGreeting("default")
	greeting.UID = "7f1c" // IsControlledBy compares UIDs, and a fake client sets none
	c := newFake(greeting).Build()

	_, err := reconcile(t.Context(), c, greeting)
	g.Expect(err).NotTo(HaveOccurred())

	configMap := &corev1.ConfigMap{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "ada-text"}, configMap)).To(Succeed())
	g.Expect(configMap.Data).To(HaveKeyWithValue(textKey, "Hallo, Ada!"))
	g.Expect(metav1.IsControlledBy(configMap, greeting)).To(BeTrue(), "without an owner reference, the ConfigMap outlives its Greeting")
}

func TestReconcileReportsATakenName(t *testing.T) {
	g := NewWithT(t)
	greeting := newGreeting("default")
	theirs := newConfigMap(greeting)
	theirs.Data = map[string]string{textKey: "not yours"}
	c := newFake(greeting, theirs).Build()

	recorder, err := reconcile(t.Context(), c, greeting)
	g.Expect(err).To(MatchError(errNameTaken), "Reconcile must return the error, so that the request is retried")

	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(greeting), greeting)).To(Succeed())
	ready := meta.FindStatusCondition(greeting.Status.Conditions, ConditionReady)
	g.Expect(ready).To(HaveField("Reason", ReasonNameTaken))
	g.Expect(ready.Message).To(ContainSubstring("ada-text"))
	g.Expect(recorder.Events).To(Receive(HavePrefix("Warning NameTaken")))
}

func TestReconcileReturnsAnErrorOfTheServer(t *testing.T) {
	g := NewWithT(t)
	greeting := newGreeting("default")
	full := errors.New("etcd is full")
	c := newFake(greeting).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return full },
	}).Build()

	_, err := reconcile(t.Context(), c, greeting)
	g.Expect(err).To(MatchError(full))
}
