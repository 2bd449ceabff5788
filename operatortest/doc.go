// Package operatortest is a test kit for Kubernetes operators. Given an [Operator], the description of an operator, it
// generates the specs that every operator must pass, and runs them against a real control plane.
//
// A suite uses it with Ginkgo, in three steps: describe the operator, start a cluster (testcluster.Cluster), and generate the
// specs (behaviours.DescribeSchema and behaviours.DescribeOperator). The package's example does all three.
//
// The packages:
//
//	operatortest             contains the types with which a suite describes its operator
//	operatortest/testcluster starts a control plane for the tests, or uses an existing cluster
//	operatortest/behaviours  tests what every operator must do, with a file for each behaviour
//	operatortest/process     runs an operator in any language as a process
//	operatortest/traffic     records one operator's requests, and interferes with them
//	operatortest/config      reads operatortest.yaml, the description of an operator that runs as a process
//	operatortest/learn       drafts operatortest.yaml from two runs of an operator
//	operatortest/report      reports the result of each behaviour: text, JSON, JUnit, HTML
//	operatortest/incluster   uses kubectl and make to test an operator that is deployed in a cluster
//	operatortest/internal    runs trials, generates specs from a schema, compares states, reads manifests
//
// # Samples
//
// Every object in a YAML file of [Operator.Samples] must be accepted under strict field validation, where an unknown or
// duplicate field is an error. In every file of [Operator.InvalidSamples], the last object must be refused, and the
// objects before it must be accepted. The file's first line quotes part of the API server's message, so the spec fails
// if the object is refused for a different reason than the file's author intended:
//
//	# refused: number in body should be less than or equal to 10
package operatortest
