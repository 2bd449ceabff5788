// Package process runs an operator as a process, so that the kit of package operatortest can test operators in any
// language. [Command] describes how to start the operator, and its Run method is what operatortest.Operator.Run
// expects:
//
//	operator := operatortest.Operator{
//		Run: process.Command{
//			Args: []string{"./bin/manager", "--kubeconfig={{.Kubeconfig}}", "--namespace={{.Namespace}}"},
//		}.Run,
//	}
//
// # The API server that the operator sees
//
// The operator gets a kubeconfig for a proxy on 127.0.0.1. The kubeconfig contains the certificate authority to verify
// the proxy with, and the only token that the proxy accepts. The proxy sends each request that it doesn't refuse
// through the transport of the kit's rest.Config. There the kit records the request and, perhaps after a delay, sends
// it as the operator's user, answers it, or makes it fail. An error in that transport reaches the operator as a broken
// connection or, with HTTP/2, as a reset stream, never as an HTTP status of the proxy's own.
//
// The kit reads JSON. If the operator accepts protobuf, CBOR or YAML, the kit asks the API server for JSON instead.
// Clients decode a reply according to its Content-Type, so they don't have to be configured. Bodies that the operator
// sends are not changed.
//
// The proxy refuses two kinds of requests from the operator, with a message in the reply:
//
//   - Impersonation, with 403. The kit impersonates the operator's user, and Kubernetes doesn't nest impersonation.
//   - A watch over WebSocket, which the kit can't read, with 503. The Java client (fabric8) then watches over HTTP.
//     Other upgraded connections pass, such as those of exec and port-forward.
//
// # How the operator ends
//
// The process runs in a process group of its own, together with everything that it starts. When the kit stops the
// operator, the group gets SIGTERM, as a pod's containers do, and is killed if it is still running after
// [Command.Grace]. When the kit kills the operator (the context's cause is traffic.ErrKilled), the group gets SIGKILL
// immediately. If the operator exits on its own, the programs that it has started are killed. If the test process is
// killed, a watchdog kills the group, too.
package process
