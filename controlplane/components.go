package controlplane

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	// loopback is the only address that a control plane listens on.
	loopback = "127.0.0.1"
	// serviceRange is the Services' address range. It is kind's default; the API server's own default has room for only
	// 254 Services.
	serviceRange = "10.96.0.0/16"
	// memberName is the name of etcd's only member.
	memberName = "default"
	// leaseSeconds is how long a simulated node's Lease is valid after a heartbeat. A new kwok takes the node over only
	// when the Lease has expired. kwok sends four heartbeats in this time: one about every 10 s.
	leaseSeconds = 40
)

// Components are the programs of a running control plane, in the order in which Up starts them.
var Components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// essential are the components that are needed to answer requests.
var essential = Components[:2]

// ports are the loopback ports of a control plane. kwok has none.
type ports struct {
	APIServer         int `json:"kube-apiserver"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcd-peer"`
	ControllerManager int `json:"kube-controller-manager"`
	Scheduler         int `json:"kube-scheduler"`
}

// of returns the ports that a component listens on.
func (p ports) of(component string) []int {
	return map[string][]int{
		"etcd":                    {p.Etcd, p.EtcdPeer},
		"kube-apiserver":          {p.APIServer},
		"kube-controller-manager": {p.ControllerManager},
		"kube-scheduler":          {p.Scheduler},
	}[component]
}

func url(port int, path string) string {
	return "https://" + loopback + ":" + strconv.Itoa(port) + path
}

// command returns the program and the arguments that start a component.
func (c *ControlPlane) command(r record, component string) []string {
	keys := c.pki(r)
	args := map[string]func(record, pki) []string{
		"etcd": c.etcd, "kube-apiserver": c.apiServer, "kube-controller-manager": c.controllerManager, "kube-scheduler": c.scheduler, "kwok": c.kwok,
	}[component]
	return append([]string{filepath.Join(c.options.Assets, component)}, args(r, keys)...)
}

func (c *ControlPlane) etcd(r record, keys pki) []string {
	client, peer := url(r.Ports.Etcd, ""), url(r.Ports.EtcdPeer, "")
	args := []string{
		"--name=" + memberName, "--data-dir=" + c.data(r.Data),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--cert-file=" + keys.certificate("etcd"), "--key-file=" + keys.key("etcd"),
		"--trusted-ca-file=" + keys.certificate(etcdAuthority), "--client-cert-auth",
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + memberName + "=" + peer,
		"--peer-cert-file=" + keys.certificate("etcd"), "--peer-key-file=" + keys.key("etcd"),
		"--peer-trusted-ca-file=" + keys.certificate(etcdAuthority), "--peer-client-cert-auth",
		"--log-level=warn",
	}
	if c.options.Temporary {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *ControlPlane) apiServer(r record, keys pki) []string {
	flags := map[string]string{
		"etcd-servers": url(r.Ports.Etcd, ""), "etcd-cafile": keys.certificate(etcdAuthority),
		"etcd-certfile": keys.certificate("etcd-client"), "etcd-keyfile": keys.key("etcd-client"),
		"bind-address": loopback, "secure-port": strconv.Itoa(r.Ports.APIServer),
		"tls-cert-file": keys.certificate("apiserver"), "tls-private-key-file": keys.key("apiserver"),
		"client-ca-file": keys.certificate(authority), "anonymous-auth": "false", "authorization-mode": "Node,RBAC",
		// Aggregated API servers need these. Source: "Configure the Aggregation Layer" in the Kubernetes documentation.
		"requestheader-client-ca-file": keys.certificate(frontProxyAuthority), "requestheader-allowed-names": "front-proxy-client",
		"requestheader-username-headers": "X-Remote-User", "requestheader-group-headers": "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"proxy-client-cert-file":             keys.certificate("front-proxy-client"), "proxy-client-key-file": keys.key("front-proxy-client"),
		"service-account-issuer":   "https://" + serviceName + ".cluster.local",
		"service-account-key-file": keys.key("service-accounts"), "service-account-signing-key-file": keys.key("service-accounts"),
		"service-cluster-ip-range": serviceRange, "allow-privileged": "true",
		// By default, the server looks for the address of the machine's default route, and exits on a machine without a
		// network.
		"advertise-address": loopback,
		// The Service "kubernetes" may not have a loopback address as its endpoint.
		"endpoint-reconciler-type": "none",
		// No client should be throttled.
		"enable-priority-and-fairness": "false", "max-requests-inflight": "0", "max-mutating-requests-inflight": "0",
		"profiling": "false",
	}
	maps.Copy(flags, r.APIServerFlags)
	args := make([]string, 0, len(flags))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	return args
}

// controller returns the flags that the controller manager and the scheduler share. Both require credentials for
// everything but health checks. There is only one of each, so leader election would have no benefit, but would cost
// seconds at startup and a write every 2 s.
func (c *ControlPlane) controller(keys pki, component string, port int) []string {
	kubeconfig := keys.path(component + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + keys.certificate("controllers"), "--tls-private-key-file=" + keys.key("controllers"),
		"--client-ca-file=" + keys.certificate(authority), "--authorization-always-allow-paths=/healthz,/readyz,/livez",
		"--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000", "--profiling=false",
	}
}

func (c *ControlPlane) controllerManager(r record, keys pki) []string {
	return append(c.controller(keys, "kube-controller-manager", r.Ports.ControllerManager),
		// As in kubeadm's clusters, each controller has its own service account, so that admission rules can tell controllers
		// from people.
		"--use-service-account-credentials=true",
		// The controller manager publishes this certificate in every namespace, in the ConfigMap kube-root-ca.crt, which pods
		// mount.
		"--root-ca-file="+keys.certificate(authority),
		"--service-account-private-key-file="+keys.key("service-accounts"),
		"--cluster-signing-cert-file="+keys.certificate(authority), "--cluster-signing-key-file="+keys.key(authority))
}

func (c *ControlPlane) scheduler(r record, keys pki) []string {
	return c.controller(keys, "kube-scheduler", r.Ports.Scheduler)
}

// kwok opens no port. If it did, any user of the machine could read its metrics; simulated containers have neither logs
// nor a shell that it could serve. --config names the file without its folder, which is kwok's working directory: kwok
// splits --config at commas, and the folder's path may contain some.
func (c *ControlPlane) kwok(r record, keys pki) []string {
	return []string{
		"--kubeconfig=" + keys.path("kwok.kubeconfig"), "--config=" + r.Stages, "--manage-all-nodes=true",
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds), "--server-address=", "--node-port=0",
	}
}
