// Package operatortest is a test kit for Kubernetes operators. From one value that describes an operator, an [Operator], it
// generates the specs that every operator must pass, and runs them against a real control plane.
//
// A suite uses it with Ginkgo, in three steps: describe the operator, start a cluster (testcluster.Cluster), and generate the
// specs (behaviours.DescribeSchema and behaviours.DescribeOperator). The package's example does all three.
//
// The packages:
//
//	operatortest             what a suite says of its operator
//	operatortest/testcluster a control plane for the tests of one process
//	operatortest/behaviours  what every operator must do, a file for each behaviour
//	operatortest/process     runs an operator in any language as a process
//	operatortest/traffic     records and disturbs the requests of one operator
//	operatortest/config      reads operatortest.yaml, the description of an operator that is a process
//	operatortest/learn       drafts operatortest.yaml from two runs of an operator
//	operatortest/report      what became of the behaviours: text, JSON, JUnit, HTML
//	operatortest/incluster   tests an operator that is deployed in a cluster, with kubectl and make
//	operatortest/internal    trials, specs from a schema, comparing states
//
// # Samples
//
// Every object in a YAML file of [Operator.Samples] must be accepted under strict field validation, where an unknown or duplicate
// field is an error. Every file in [Operator.InvalidSamples] must be refused; its first line names a part of the message the API
// server must give, so that a file can't be refused for another reason than its author had in mind:
//
//	# refused: number in body should be less than or equal to 10
package operatortest
