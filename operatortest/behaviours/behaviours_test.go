package behaviours

import (
	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("the reference operator", func() {
	DescribeOperator(gadgetOperator(""), cluster)
})
