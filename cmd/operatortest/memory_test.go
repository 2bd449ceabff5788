package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
	operatorconfig "example.com/operator-workshop/operatortest/config"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
)

// greeterVariable, if set, makes the test binary run as the operator below. The binary's argument is the namespace.
const greeterVariable = "OPERATORTEST_GREETER"

var greetingKind = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Greeting"}

// named maps the UIDs of Greetings to the random names of their ConfigMaps. The operator is flawed, because it keeps the
// names only here: its successor doesn't know them, and chooses new ones.
var named sync.Map

func runGreeter(ctx context.Context, restConfig *rest.Config, namespace string) error {
	unique := true // the test process runs several operators
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: &unique},
	})
	if err != nil {
		return err
	}
	greeter := &greeter{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(newGreeting()).Named("greeting").Complete(greeter); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func newGreeting() *unstructured.Unstructured {
	greeting := &unstructured.Unstructured{}
	greeting.SetGroupVersionKind(greetingKind)
	return greeting
}

type greeter struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *greeter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	greeting := newGreeting()
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil || greeting.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	name, _ := named.LoadOrStore(greeting.GetUID(), "greeting-"+utilrand.String(8))
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: greeting.GetNamespace(), Name: fmt.Sprint(name), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(greeting, greetingKind)},
	}, Data: map[string]string{"text": text}}
	err := r.Create(ctx, made.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = r.Update(ctx, made)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, greeting.GetGeneration())
	return reconcile.Result{}, r.Status().Patch(ctx, greeting, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func TestAnOperatorThatIsAProcess(t *testing.T) {
	g := NewWithT(t)
	example, err := filepath.Abs("../../operatortest/examples/shell")
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "operatortest.yaml")
	g.Expect(os.WriteFile(file, []byte(`crds: [`+example+`/crd.yaml]
sample: `+example+`/sample.yaml
command: [env, `+greeterVariable+`=yes, "`+os.Args[0]+`", "{{.Namespace}}"]
allNamespaces: true
converged: has(object.status) && object.status.observedGeneration == object.metadata.generation
children:
- apiVersion: v1
  kind: ConfigMap
  generated: true
values:
  spec.text: [Hello, Good morning]
timeout: 10s
`), 0o600)).To(Succeed())
	operator, err := operatorconfig.Load(file, "")
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &testcluster.Cluster{CRDs: operator.CRDs}
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	g.Expect(cluster.Start(t.Context())).To(Succeed())

	try := func(g Gomega, operator operatortest.Operator, behaviour string) report.Behaviour {
		made, err := behaviours.Run(t.Context(), operator, cluster, behaviours.Options{Only: []string{behaviour}})
		g.Expect(err).NotTo(HaveOccurred())
		return made.Behaviours[0]
	}
	// A simulated crash in the test process keeps package variables, and so doesn't show that the operator depends on
	// them. A killed process loses its variables.
	t.Run("its memory is lost with it", func(t *testing.T) {
		g := NewWithT(t)
		process := try(g, operator, "crash")
		g.Expect(process.Result).To(Equal(report.Failed))
		g.Expect(process.Failure).To(MatchRegexp(`this Greeting controls [23] objects of kind ConfigMap`))
		inside := operator
		inside.Run = func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
			return runGreeter(ctx, config, options.Namespace)
		}
		function := try(g, inside, "crash")
		g.Expect(function.Result).To(Equal(report.Passed), function.Failure)
	})
	t.Run("it sees two namespaces", func(t *testing.T) {
		g := NewWithT(t)
		neighbours := try(g, operator, "neighbours")
		g.Expect(neighbours.Result).To(Equal(report.Passed), neighbours.Failure)
		g.Expect(neighbours.Trials).To(ContainElement(And(
			HaveField("ID", "neighbours/one-of-two-resources-with-the-same-name-in-two-namespaces-is-deleted"), HaveField("Result", report.Passed))))
	})
}
