package behaviours

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
)

// Flaws that show when the spec changes.
const (
	actsOnCreate  mutation = "never changes a ConfigMap that it has created"
	ignoresColour mutation = "ignores the colour"
	keepsColour   mutation = "leaves the colour in the ConfigMap when it is gone from the spec"
	leaksRenamed  mutation = "leaves the ConfigMap with a former name behind"
	staysRefused  mutation = "gives up on a resource whose spec was unmeetable"
	missesRemoval mutation = "does not notice that someone else's ConfigMap is gone"
	keepsStatus   mutation = "leaves the status unchanged when it can't meet a spec"
	claimsSuccess mutation = "says that an unmeetable spec is met"
)

// changeTimeout bounds the waits for a broken operator; some flaws need many.
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
	Entry("an immutable field that can be changed", func(operator *operatortest.Operator) { operator.Immutable = []string{"spec.size"} },
		"expected the API server to refuse a change of spec.size from 2 to 1"),
)
