package behaviours

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// widgetsOfGadgetOperator describes the operator servesWidgets by its second kind. gadgetOperator(servesWidgets)
// describes it by its first.
func widgetsOfGadgetOperator() operatortest.Operator {
	both := gadgetOperator(servesWidgets)
	return operatortest.Operator{
		CRDs: []string{"testdata/gadget/gadgets.yaml", "testdata/crd"}, Sample: "testdata/widget.yaml",
		Roles: both.Roles, Run: both.Run, AllNamespaces: both.AllNamespaces,
		Children: []operatortest.Child{{
			Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			Name: func(widget *unstructured.Unstructured) string { return "widget-" + widget.GetName() },
		}},
		MaxWrites: 1,
		Converged: func(*unstructured.Unstructured) error { return nil }, // a Widget has no status
		LeftOut: map[string]string{
			trial.Claims: "a Widget has no status",
			"least-privilege/* gadgets.test.example.com":  "the Gadgets' trials use them",
			"least-privilege/patch configmaps":            "only a Gadget's ConfigMap is changed",
			"least-privilege/delete configmaps":           "only a Gadget's ConfigMap is deleted",
			"least-privilege/create events.events.k8s.io": "only a Gadget's name conflict is reported",
			"least-privilege/patch events.events.k8s.io":  "only a Gadget's name conflict is reported",
		},
	}
}

var _ = pooledIt("an operator of two kinds can also be tried on the second kind, without the permissions that only the first one needs", func(ctx context.Context, g Gomega) {
	operator := widgetsOfGadgetOperator()
	g.Expect(checkLeftOut(operator.LeftOut)).To(Succeed())
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{converges, frugal, drift, deletion, neighbours, leastPrivilege} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})

var _ = pooledIt("a permission that only another kind needs counts as unused unless it is left out", func(ctx context.Context, g Gomega) {
	operator := widgetsOfGadgetOperator()
	delete(operator.LeftOut, "least-privilege/* gadgets.test.example.com")
	g.Expect(tryReport(ctx, leastPrivilege, operator, "found these unused: patch gadgets.test.example.com (testdata/gadget/role-widgets.yaml), "+
		"patch gadgets.test.example.com/status (testdata/gadget/role-widgets.yaml), update gadgets.test.example.com/finalizers")).To(Succeed())
})
