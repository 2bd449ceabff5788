package learn_test

import (
	"fmt"
	"time"

	"example.com/operator-workshop/operatortest/learn"
)

// Learn checks the options before it starts a control plane and runs the operator.
func ExampleOptions_Check() {
	options := learn.Options{
		CRDs:    []string{"../examples/shell/crd.yaml"},
		Sample:  "../examples/shell/role.yaml", // a mistake
		Command: []string{"../examples/shell/greeter.sh"},
		Timeout: time.Minute,
	}
	fmt.Println(options.Check())
	options.Sample = "../examples/shell/sample.yaml"
	fmt.Println(options.Check())
	// Output:
	// ../examples/shell/role.yaml has the kind Role of rbac.authorization.k8s.io/v1, which no definition in ../examples/shell/crd.yaml defines: use --crd to name the folder of its definition
	// <nil>
}
