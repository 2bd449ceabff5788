package behaviours

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

// Flaws that show when the spec changes or can't be met.
const (
	actsOnCreate  mutation = "never changes a ConfigMap that it has created"
	ignoresColour mutation = "ignores the colour"
	ignoresSize   mutation = "ignores the size, and always uses its default"
	keepsColour   mutation = "leaves the colour in the ConfigMap when it is gone from the spec"
	leaksRenamed  mutation = "leaves the ConfigMap with a former name behind"
	staysRefused  mutation = "gives up on a resource whose spec was unmeetable"
	missesRemoval mutation = "does not notice that someone else's ConfigMap is gone"
	keepsStatus   mutation = "leaves the status unchanged when it can't meet a spec"
	claimsSuccess mutation = "says that an unmeetable spec is met"
)

// changeTimeout bounds each wait for an operator whose description is wrong about the spec.
const changeTimeout = 3 * time.Second

func isRefused(gadget *unstructured.Unstructured) bool {
	conditions, err := conditionList(gadget)
	return err == nil && meta.FindStatusCondition(conditions, "Ready") != nil && !meta.IsStatusConditionTrue(conditions, "Ready")
}

var _ = Describe("the test kit", func() {
	catches("does not follow its spec",
		mutant{update, actsOnCreate, "expected the same final state as that of a new resource with that spec"},
		mutant{update, ignoresColour, "expected a change of spec.colour to have an effect\nfound none"},
		mutant{update, keepsColour, `after the change of spec.colour from "green" to nothing`},
		mutant{update, leaksRenamed, `after the change of spec.configMapName from "settings" to "options"`},
	)
})

var _ = pooledIt("an operator that keeps the effect of a removed field is accepted if the field is declared as required", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(keepsColour)
	operator.Seed = 4 // with this seed, transitions catches the operator if Required doesn't list the field
	operator.Required = map[string]string{"spec.colour": "without a colour, the ConfigMap keeps the last one"}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{update, transitions, crash} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})

var _ = pooledIt("an operator that ignores a field is caught even if the sample has the field's default", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(ignoresSize)
	operator.Timeout, operator.External = catchTimeout, nil // the parcel has the right size
	operator.Sample = "testdata/gadget/plain.yaml"
	g.Expect(tryReport(ctx, update, operator, "expected a change of spec.size to have an effect\nfound none")).To(Succeed())
})

var _ = pooledIt("an operator is accepted if the sample sets only the required field", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator("")
	operator.Sample = "testdata/gadget/plain.yaml"
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(update.try(ctx, runner)).To(Succeed())
})

var _ = pooledIt("an operator that ignores a field is accepted if the field is declared to have no effect yet", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(ignoresColour)
	operator.LeftOut = map[string]string{"update/spec.colour": "it is for the next version"}
	g.Expect(checkLeftOut(operator.LeftOut)).To(Succeed())
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	for _, behaviour := range []behaviour{update, transitions, crash} {
		g.Expect(behaviour.try(ctx, runner)).To(Succeed(), behaviour.name)
	}
})

var _ = pooledIt("a field without a second value keeps no other field from being changed", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator("")
	operator.Values, operator.Fixed = nil, map[string]string{"spec.size": "this spec needs a fixed field"}
	operator.Required = map[string]string{"spec.colour": "this spec needs a required field"}
	made, err := Run(ctx, operator, cluster, Options{Only: []string{update.name}})
	g.Expect(err).NotTo(HaveOccurred())
	tried := made.Behaviours[0]
	g.Expect(tried.Result).To(Equal(report.Failed))
	g.Expect(tried.Failure).To(ContainSubstring("found none for spec.configMapName, whose schema doesn't say enough"))
	g.Expect(tried.Trials).To(HaveExactElements(And(HaveField("Name", `spec.colour from "green" to "red"`), HaveField("Result", report.Passed))))
	g.Expect(tried.LeftOut).To(Equal(map[string]string{
		"a change of spec.size": "this spec needs a fixed field", "the removal of spec.colour": "this spec needs a required field",
	}), "the report must say which fields are not changed")
})

var _ = DescribeTable("a wrong description of a spec is noticed", func(ctx SpecContext, change func(*operatortest.Operator), report string) {
	operator := gadgetOperator("")
	operator.Timeout = changeTimeout
	change(&operator)
	expectReport(ctx, update, operator, report)
},
	Entry("a field without a second value", func(operator *operatortest.Operator) { operator.Values = nil },
		"found none for spec.configMapName, whose schema doesn't say enough: declare Operator.Values"),
	Entry("values that are all refused", func(operator *operatortest.Operator) { operator.Values["spec.size"] = []any{9} },
		"expected a change of spec.size that the API server accepts"),
	Entry("a fixed field without a reason", func(operator *operatortest.Operator) { operator.Fixed = map[string]string{"spec.size": ""} },
		`operator.Fixed has spec.size="": name a field of gadgets.`),
	Entry("a fixed field that does not exist", func(operator *operatortest.Operator) { operator.Fixed = map[string]string{"spec.sise": "typo"} },
		`operator.Fixed has spec.sise="typo": name a field of gadgets.`),
	Entry("a required field that the sample lacks", func(operator *operatortest.Operator) {
		operator.Sample, operator.Required = "testdata/gadget/plain.yaml", map[string]string{"spec.colour": "it is kept"}
	}, "operator.Required names spec.colour, which the sample lacks"),
	Entry("an immutable field that can be changed", func(operator *operatortest.Operator) { operator.Immutable = []string{"spec.size"} },
		"expected the API server to refuse a change of spec.size from 2 to 1"),
)
