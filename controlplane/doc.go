// Package controlplane runs a real Kubernetes control plane without a container engine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok, which plays the kubelet of simulated nodes. It is envtest plus the
// garbage collector, Deployments whose pods get ready, and namespaces that go away:
//
//	plane, err := controlplane.Start(ctx, controlplane.Options{Install: install.CRDs("config/crd/bases")})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//	config, err := install.Config(plane)
//
// [Start] makes a control plane that ends with the process, even if that is killed. [Open] is for one that goes on running
// by itself and keeps its data in a folder, as the classroom's clusters do. You can call its methods in any state, from
// several processes, and after any interruption: like a reconciler, each compares what exists with what should exist, and
// changes the difference.
//
// # Security
//
// Everything listens on 127.0.0.1 only, and no port serves a client without credentials. Only its owner can read the
// folder. Other users of the machine can learn that something listens, and whether it is healthy.
//
// # What is in the folder
//
//	controlplane.json   ports, and which of the folders below are in use
//	kubeconfig          the administrator's
//	pki-N/              keys, certificates and the components' kubeconfigs
//	etcd-N/             etcd's data
//	fresh.db            the snapshot that Reset goes back to
//	kwok-HASH.yaml      how simulated nodes and pods behave
//	lock                held while a method changes the control plane
//	run/                a file for each component, locked by its process
//	logs/               a log for each component, and NAME.log.old of the time before
package controlplane
