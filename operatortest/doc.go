// Package operatortest is a test kit for Kubernetes operators. It starts a real
// control plane for the tests of one process and generates the specs that every
// operator must pass, from one value that describes the operator.
//
// A suite uses it with Ginkgo, in three steps:
//
//	var operator = operatortest.Operator{
//		CRDs:           []string{"config/crd"},
//		Samples:        "config/samples",
//		InvalidSamples: "config/samples/invalid",
//	}
//
//	var cluster = &operatortest.Cluster{CRDs: operator.CRDs}
//
//	var _ = BeforeSuite(func(ctx SpecContext) {
//		DeferCleanup(cluster.Stop)
//		Expect(cluster.Start(ctx)).To(Succeed())
//	})
//
//	var _ = Describe("my operator", func() {
//		operatortest.DescribeSchema(operator, cluster)
//	})
//
// # The cluster
//
// [Cluster.Start] runs etcd and kube-apiserver through envtest, and beside them
// kube-controller-manager, kube-scheduler and kwok. So a namespace that is
// deleted really goes away, owner references are garbage-collected and
// Deployments become available on a few simulated nodes; with envtest alone
// none of this happens. Service accounts work as on any cluster too: a pod gets
// the one of its namespace, and a token made for it is valid.
//
// The programs come from the folder that KUBEBUILDER_ASSETS names, else from
// bin/ in the root of the workshop's repository. Everything listens on 127.0.0.1
// on free ports, keeps its files in one temporary folder and is ended by
// [Cluster.Stop]. If the test process is killed instead, a watchdog ends it.
//
// Custom resource definitions given in [Cluster.CRDs] are installed before the
// controller manager starts, so that its garbage collector knows them at once.
// Of a definition installed later it learns within about 30 seconds; until then
// it does not collect the children of such objects.
//
// With USE_EXISTING_CLUSTER=true nothing is started. The tests run on the
// cluster that KUBECONFIG names; [Cluster.Stop] removes the definitions and
// webhooks that [Cluster.Start] created there, and leaves those it found.
// Webhooks need a cluster whose API server can reach the test process.
//
// # Samples
//
// [DescribeSchema] reads two folders. Every object in a YAML file of
// [Operator.Samples] must be accepted under strict field validation, where an
// unknown or duplicate field is an error. Every file in
// [Operator.InvalidSamples] must be refused; its first line names a part of the
// message the API server must give, so that a file can't be refused for another
// reason than its author had in mind:
//
//	# refused: number in body should be less than or equal to 10
package operatortest
