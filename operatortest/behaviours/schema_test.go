package behaviours

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/testcluster"
)

var _ = Describe("a correct operator", func() {
	AfterEach(func() {
		Expect(CurrentSpecReport().Labels()).To(ContainElement("schema"), "-ginkgo.label-filter=schema must select the specs of DescribeSchema")
	})

	DescribeSchema(operatortest.Operator{
		CRDs:           []string{"testdata/crd"},
		Samples:        "testdata/samples",
		InvalidSamples: "testdata/invalid",
	}, cluster)
})

// All but one of these specs fail on purpose; the next test checks that they do.
var _ = Describe("a broken operator", Label(roleBroken), func() {
	DescribeSchema(operatortest.Operator{
		CRDs:           []string{"testdata/broken/crd", "testdata/crd"},
		Samples:        "testdata/broken/samples",
		InvalidSamples: "testdata/broken/invalid",
	}, cluster)
	DescribeSchema(operatortest.Operator{Samples: "testdata/broken/empty", InvalidSamples: "testdata/absent"}, cluster)
})

var _ = Describe("the schema specs", func() {
	It("catch and name every mistake of a broken operator", func(ctx SpecContext) {
		broken := actor(ctx, roleBroken, testcluster.ExistingVariable+"=true", testcluster.KubeconfigVariable+"="+cluster.Kubeconfig)
		output, err := broken.CombinedOutput()
		Expect(err).To(HaveOccurred(), "the suite of the broken operator must fail")
		for _, report := range []string{
			`.spec.names.shortnames: field not declared in schema`,
			`testdata/broken/samples/refused.yaml must be accepted, but the API server refuses it`,
			`testdata/broken/invalid/accepted.yaml must be refused with "size must be odd", but the API server accepts it`,
			`testdata/broken/invalid/other-reason.yaml must be refused with "size must be odd", but the API server says`,
			`testdata/broken/invalid/unnamed.yaml does not say why it is refused`,
			`testdata/broken/empty contains no YAML file`,
			`open testdata/absent: no such file or directory`,
			`1 Passed | 7 Failed`, // only the valid definition passes
		} {
			Expect(string(output)).To(ContainSubstring(report))
		}
	}, NodeTimeout(specTimeout))
})
