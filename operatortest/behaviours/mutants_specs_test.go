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
	actsOnCreate  mutation = "never changes a ConfigMap that it has made"
	ignoresColour mutation = "does nothing with the colour"
	keepsColour   mutation = "leaves the colour in the ConfigMap when it is gone from the spec"
	leaksRenamed  mutation = "leaves the ConfigMap of a former name behind"
	staysRefused  mutation = "gives a resource up once it was refused"
	missesRemoval mutation = "does not notice that a foreign ConfigMap is gone"
	keepsStatus   mutation = "leaves the status as it was when it refuses a spec"
	claimsSuccess mutation = "says of a refused spec that it is met"
)

// changeTimeout bounds the waits for a broken operator; some flaws need many.
const changeTimeout = 3 * time.Second

func isRefused(gadget *unstructured.Unstructured) bool {
	conditions, err := conditionList(gadget)
	return err == nil && meta.FindStatusCondition(conditions, "Ready") != nil && !meta.IsStatusConditionTrue(conditions, "Ready")
}

var _ = Describe("the test kit", func() {
	catches("does not follow its spec",
		mutant{update, actsOnCreate, "expected the same end as that of a new resource with that spec"},
		mutant{update, ignoresColour, "expected a change of spec.colour to have an effect\nfound none"},
		mutant{update, keepsColour, `after the change of spec.colour from "green" to nothing`},
		mutant{update, leaksRenamed, `after the change of spec.configMapName from "settings" to "options"`},
	)
})

var _ = DescribeTable("a spec that is described wrongly is noticed", func(ctx SpecContext, change func(*operatortest.Operator), report string) {
	operator := gadgetOperator("")
	operator.Timeout = changeTimeout
	change(&operator)
	expectReport(ctx, update, operator, report)
},
	Entry("a field without a second value", func(operator *operatortest.Operator) { operator.Values = nil },
		"found none for spec.configMapName, whose schema doesn't tell enough: declare Operator.Values"),
	Entry("values that are all refused", func(operator *operatortest.Operator) { operator.Values["spec.size"] = []any{9} },
		"expected a change of spec.size that the API server accepts"),
	Entry("a field that keeps its value for no reason", func(operator *operatortest.Operator) { operator.Fixed = map[string]string{"spec.size": ""} },
		`operator.Fixed has spec.size="": name a field of gadgets.`),
	Entry("a field that keeps its value, and does not exist", func(operator *operatortest.Operator) { operator.Fixed = map[string]string{"spec.sise": "typo"} },
		`operator.Fixed has spec.sise="typo": name a field of gadgets.`),
	Entry("a field that can be changed, and should not", func(operator *operatortest.Operator) { operator.Immutable = []string{"spec.size"} },
		"expected the API server to refuse a change of spec.size from 2 to 1"),
)
