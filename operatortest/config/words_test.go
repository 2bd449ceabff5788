package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWords(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a field":                    {"declare Operator.Values for it", "declare values for it"},
		"an abbreviated field":       {"see Operator.CRDs", "see crds"},
		"operator in lower case":     {"operator.LeftOut names", "leftOut names"},
		"a field of a child":         {"the patch of Child.Foreign", "the patch of foreign of the child"},
		"labels of a child":          {"apart with Child.Labels)", "apart with labels of the child)"},
		"what others apply":          {"read Child.Applied \"a\"", "read applied of the child \"a\""},
		"the namespace":              {"confine it to RunOptions.Namespace", "confine it to {{.Namespace}}, in command or env"},
		"how to try a behaviour":     {"alone: go test -ginkgo.label-filter=crash", "alone: operatortest run -f a.yaml --only=crash"},
		"a name that is not a field": {"the operator.Status is", "the operator.Status is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Words("operatortest run -f a.yaml")(test.text)).To(Equal(test.want))
		})
	}
}
