// Package process runs an operator as a process, so that the kit of package operatortest can test one in any language.
// [Command] describes how to start it, and its Run is what operatortest.Operator.Run asks for:
//
//	operator := operatortest.Operator{
//		Run: process.Command{
//			Args: []string{"./bin/manager", "--kubeconfig={{.Kubeconfig}}", "--namespace={{.Namespace}}"},
//		}.Run,
//	}
//
// # The API server that the operator sees
//
// The operator gets a kubeconfig for a proxy on 127.0.0.1, with a certificate and a token of its own. The proxy sends
// each request through the transport of the kit's rest.Config: the kit records it there, may delay or fail it, and makes
// it in the name of the operator's user. A request that fails in that transport reaches the operator as a broken
// connection, never as an HTTP status that the API server didn't send.
//
// The kit reads JSON. Where the operator accepts protobuf, CBOR or YAML, the proxy asks for JSON instead; a client
// follows the Content-Type of the reply, so it needs no setting. Bodies that the operator sends stay as they are.
//
// Two kinds of requests are refused, with a message in the reply:
//
//   - Impersonation, with 403. The kit impersonates the operator's user, and Kubernetes doesn't nest impersonation.
//   - A watch over WebSocket, with 503, after which the Java client (fabric8) watches over HTTP. The kit can't read it.
//     Other upgraded connections pass, such as those of exec and port-forward.
//
// # How it ends
//
// The process runs in a process group of its own, with all that it starts. When the kit ends the operator, the group
// gets SIGTERM, as a pod does, and is killed if it is still running after [Command.Grace]. When the kit kills the operator
// (traffic.ErrKilled is the cause of the context's end), the group gets SIGKILL at once. If the test process is killed, a
// watchdog kills the group too.
package process
