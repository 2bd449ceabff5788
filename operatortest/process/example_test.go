package process_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/process"
)

// This operator is a program with flags like those of many other operators. All fields of operatortest.Operator except
// Run are as for an operator in Go.
func ExampleCommand() {
	command := process.Command{
		Args: []string{
			"./bin/manager", "--kubeconfig={{.Kubeconfig}}", "--namespace={{.Namespace}}",
			"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:{{.FreePort}}",
		},
		LeaderElection: []string{
			"--leader-elect", "--leader-election-namespace={{.LeaseNamespace}}",
			"--lease-duration={{.LeaseDuration}}", "--renew-deadline={{.RenewDeadline}}", "--retry-period={{.RetryPeriod}}",
		},
		Resync: []string{"--resync-period={{.Resync}}"},
		Logs:   "logs",
	}
	operator := operatortest.Operator{
		CRDs:    []string{"config/crd/bases"},
		Samples: "config/samples",
		Sample:  "config/samples/example_v1_widget.yaml",
		Roles:   []string{"config/rbac/role.yaml"},
		Run:     command.Run,
	}
	_ = operator // see the example of package operatortest
}

// The kit calls Run many times. If an operator exits too early, the error contains the last lines that it printed.
func ExampleCommand_Run() {
	command := process.Command{Args: []string{"sh", "-c", `echo "looking at namespace {{.Namespace}}"; exit 3`}}
	config := &rest.Config{Host: "https://127.0.0.1:6443"} // the kit's own, for the API server of its cluster
	fmt.Println(command.Run(context.Background(), config, operatortest.RunOptions{Namespace: "widgets"}))
	// Output:
	// the operator exited before it was told to stop (exit status 3); its last lines:
	// looking at namespace widgets
}
