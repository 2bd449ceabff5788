package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

// placedOperator describes the operator needsSecret, with the trial's namespace in the sample, in the values and
// patches, and in the names of the objects that are prepared, among them a ClusterRole.
func placedOperator() operatortest.Operator {
	operator := gadgetOperator(needsSecret)
	operator.Samples, operator.Sample = "", "testdata/gadget/placed.yaml"
	operator.Values = map[string][]any{"spec.configMapName": {"settings-{{.Namespace}}", "options-{{ .Namespace }}"}}
	name := operator.Children[0].Name
	operator.Children[0].Name = func(gadget *unstructured.Unstructured) string {
		if gadget.GetNamespace() == "" {
			return "" // as a CEL expression that reads object.metadata.namespace gives no name either
		}
		return name(gadget)
	}
	operator.Children[0].Drift = map[string]string{"another size": `{"data":{"size":"{{.Namespace}}"}}`}
	operator.Children[0].Foreign = map[string]string{"someone else's key": `{"data":{"in.{{.Namespace}}":"{{.Namespace}}"}}`}
	operator.Children[0].Applied = map[string]string{"an annotation": `{"metadata":{"annotations":{"someone-else.example.com/in":"{{.Namespace}}"}}}`}
	operator.Unmeetable[0].Patch = `{"spec":{"configMapName":"taken-{{.Namespace}}"}}`
	operator.Unmeetable[0].Prepare = func(ctx context.Context, writer client.Client, namespace string) error {
		return writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken-" + namespace}})
	}
	operator.Prepare = func(ctx context.Context, writer client.Client, namespace string) error {
		for _, name := range []string{"settings-", "options-", "taken-"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + namespace}}
			if err := writer.Create(ctx, secret); err != nil {
				return err
			}
		}
		return writer.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "prepared-" + namespace, Finalizers: []string{"test.example.com/no-one-removes-this"},
		}})
	}
	return operator
}

var _ = pooledIt("the trial's namespace replaces the placeholder wherever an operator's description may contain it", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, placedOperator(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, drift, collision, update, transitions, misoperation, deletion, neighbours} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
	g.Expect(runner.Trials(misoperation.name)).To(ContainElement(And(
		HaveField("Name", "the spec names settings-{{.Namespace}}-is-missing, which does not exist"), HaveField("Result", report.Passed),
	)))
})

var _ = pooledIt("prepared cluster-scoped objects are deleted with their trial", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, placedOperator(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	var prepared client.ObjectKey
	g.Expect(runner.Try(ctx, "prepares a ClusterRole", func(ctx context.Context, t *trial.Trial) error {
		prepared.Name = "prepared-" + t.Namespace
		return t.Cluster.Admin.Get(ctx, prepared, &rbacv1.ClusterRole{})
	})).To(Succeed())
	g.Expect(cluster.Admin.Get(ctx, prepared, &rbacv1.ClusterRole{})).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
})

var _ = pooledIt("an operator sees prepared cluster-scoped resources only if they are of its own trial", func(ctx context.Context, g Gomega) {
	depot := func(name string) *unstructured.Unstructured {
		made := newDepot()
		made.SetName(name)
		made.Object["spec"] = map[string]any{"size": int64(1)}
		return made
	}
	stranger := depot("of-no-trial")
	g.Expect(cluster.Admin.Create(ctx, stranger)).To(Succeed())
	defer func() { g.Expect(cluster.Admin.Delete(ctx, stranger)).To(Succeed()) }()
	operator := gadgetOperator("")
	operator.Roles = nil // the operator may list Depots
	operator.Prepare = func(ctx context.Context, writer client.Client, namespace string) error {
		return writer.Create(ctx, depot("prepared-"+namespace))
	}
	listed := make(chan []string, 1)
	operator.Run = func(ctx context.Context, config *rest.Config, _ operatortest.RunOptions) error {
		reader, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		depots := &unstructured.UnstructuredList{}
		depots.SetGroupVersionKind(depotKind)
		if err := reader.List(ctx, depots); err != nil {
			return err
		}
		var names []string
		for i := range depots.Items {
			names = append(names, depots.Items[i].GetName())
		}
		listed <- names
		<-ctx.Done()
		return nil
	}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(runner.Try(ctx, "lists Depots", func(ctx context.Context, t *trial.Trial) error {
		t.Start(operatortest.RunOptions{})
		g.Eventually(ctx, listed).WithTimeout(specTimeout).Should(Receive(HaveExactElements("prepared-" + t.Namespace)))
		return nil
	})).To(Succeed())
})

var _ = It("a sample with a placeholder of another name is refused with a hint", func(ctx SpecContext) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(""), cluster)
	Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	Expect(runner.Try(ctx, "a misspelt placeholder", func(ctx context.Context, t *trial.Trial) error {
		return t.Create(ctx, t.Resource(map[string]any{"configMapName": "settings-{{.Namspace}}"}))
	})).To(MatchError(ContainSubstring("it contains {{.Namspace}} as it is, because the only placeholder in an object is {{.Namespace}}")))
}, NodeTimeout(specTimeout))
