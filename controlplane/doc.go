// Package controlplane runs a real Kubernetes control plane without a container engine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok, which acts as the kubelet of simulated nodes. Think of it as
// envtest with a garbage collector, with Deployments whose pods become ready, and with namespaces that can be deleted.
// The package's example starts a control plane in about ten lines.
//
// [Start] makes a control plane that ends when the process does, even if the process is killed. To get one that keeps
// running and stores its data in a folder of your choice, as the workshop's built-in cluster does, call [Open]. You can
// call the methods of its result from several processes, and after any interruption: like a reconciler,
// [ControlPlane.Up] compares what exists with what should exist, and changes only what differs.
//
// # Security
//
// All components listen on 127.0.0.1 only. Except for health checks, no port serves a client without credentials. Only
// the owner can read the folder. Other users of the machine can find out that something is listening, and whether it is
// healthy.
//
// # What is in the folder
//
//	controlplane.json   ports, additional flags for kube-apiserver, and which of the folders and files below are in use
//	kubeconfig          the administrator's kubeconfig
//	pki-N/              keys, certificates and the components' kubeconfigs
//	etcd-N/             etcd's data
//	fresh.db            the snapshot that Reset restores
//	kwok-HASH.yaml      how simulated nodes and pods behave
//	lock                locked while a method changes the control plane
//	run/                a file for each component, locked by its process
//	logs/               a log for each component, and NAME.log.old from its previous run
//
// Package install adds the folder webhook-certificates/, with the webhook server's certificate and key.
package controlplane
