package classroom

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// kwokctlConfiguration is the part of kwokctl's configuration that the workshop sets.
// Source: KwokctlConfiguration in sigs.k8s.io/kwok/pkg/apis/config/v1alpha1.
type kwokctlConfiguration struct {
	Kind              string           `json:"kind"`
	APIVersion        string           `json:"apiVersion"`
	Options           map[string]any   `json:"options"`
	ComponentsPatches []componentPatch `json:"componentsPatches"`
}

type componentPatch struct {
	Name      string     `json:"name"`
	ExtraArgs []extraArg `json:"extraArgs"`
	ExtraEnvs []extraEnv `json:"extraEnvs,omitempty"`
}

type extraEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type extraArg struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Override replaces an argument of kwokctl's own.
	Override bool `json:"override,omitempty"`
}

// writeConfig writes the file that `kwokctl create cluster --config` reads.
func (e *embedded) writeConfig(chosen ports) error {
	bin := func(name string) string { return filepath.Join(e.options.Repo.Bin(), name) }
	config := kwokctlConfiguration{
		Kind:       "KwokctlConfiguration",
		APIVersion: "config.kwok.x-k8s.io/v1alpha1",
		Options: map[string]any{
			"runtime":                     "binary",
			"bindAddress":                 loopback, // kwokctl's default is every address
			"disableQPSLimits":            true,
			"kubeApiserverPort":           chosen.APIServer,
			"etcdPort":                    chosen.Etcd,
			"etcdPeerPort":                chosen.EtcdPeer,
			"kubeControllerManagerPort":   chosen.ControllerManager,
			"kubeSchedulerPort":           chosen.Scheduler,
			"etcdBinary":                  bin("etcd"),
			"etcdctlBinary":               bin("etcdctl"),
			"etcdutlBinary":               bin("etcdutl"),
			"kubectlBinary":               bin("kubectl"),
			"kubeApiserverBinary":         bin("kube-apiserver"),
			"kubeControllerManagerBinary": bin("kube-controller-manager"),
			"kubeSchedulerBinary":         bin("kube-scheduler"),
			"kwokControllerBinary":        bin("kwok"),
		},
		ComponentsPatches: e.patches(chosen),
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write kwokctl's configuration: %w", err)
	}
	return writeFile(e.path(".yaml"), content)
}

// patches are the arguments that components get beyond kwokctl's. Other users of the machine can reach the ports, so
// each component demands a certificate for everything but its health.
func (e *embedded) patches(chosen ports) []componentPatch {
	replace := func(key, value string) extraArg { return extraArg{Key: key, Value: value, Override: true} }
	certificate, key, authority := e.pki("admin.crt"), e.pki("admin.key"), e.pki("ca.crt")
	client, peer := local(chosen.Etcd, ""), local(chosen.EtcdPeer, "")
	// Without a serving certificate, each of the two would first make a key.
	serving := []extraArg{
		{Key: "tls-cert-file", Value: certificate}, {Key: "tls-private-key-file", Value: key},
		replace("authorization-always-allow-paths", "/healthz,/readyz,/livez"),
		// There is one of each, so an election only costs: seconds at the start, and a write every 2 s.
		{Key: "leader-elect", Value: "false"},
	}
	return []componentPatch{
		{Name: "etcd", ExtraArgs: []extraArg{
			replace("listen-client-urls", client), replace("advertise-client-urls", client),
			{Key: "cert-file", Value: certificate}, {Key: "key-file", Value: key},
			{Key: "trusted-ca-file", Value: authority}, {Key: "client-cert-auth", Value: "true"},
			replace("listen-peer-urls", peer), replace("initial-advertise-peer-urls", peer), replace("initial-cluster", etcdName+"="+peer),
			{Key: "peer-cert-file", Value: certificate}, {Key: "peer-key-file", Value: key},
			{Key: "peer-trusted-ca-file", Value: authority}, {Key: "peer-client-cert-auth", Value: "true"},
		}},
		{Name: "kube-apiserver", ExtraArgs: []extraArg{
			replace("etcd-servers", client),
			{Key: "etcd-cafile", Value: authority}, {Key: "etcd-certfile", Value: certificate}, {Key: "etcd-keyfile", Value: key},
			{Key: "anonymous-auth", Value: "false"},
			// Left to itself the server looks for the machine's outward address, and does
			// not start on one that has none, such as a laptop without a network.
			{Key: "advertise-address", Value: loopback},
			// A loopback address is no valid endpoint for the Service "kubernetes".
			{Key: "endpoint-reconciler-type", Value: "none"},
			// The range that kubeadm chooses. The server's own has room for 254 Services.
			{Key: "service-cluster-ip-range", Value: "10.96.0.0/16"},
		}, ExtraEnvs: []extraEnv{
			// A tighter garbage collector: what a class of clusters on one host needs is memory.
			{Name: "GOGC", Value: "50"},
		}},
		{Name: "kube-controller-manager", ExtraArgs: append([]extraArg{
			// Each controller by its own name, as in other clusters: admission rules can tell them from people.
			{Key: "use-service-account-credentials", Value: "true"},
		}, serving...)},
		{Name: "kube-scheduler", ExtraArgs: serving},
		// kwok would serve its metrics to everybody, and has nothing else to serve: no container has logs or a shell.
		{Name: "kwok-controller", ExtraArgs: []extraArg{replace("server-address", ""), replace("node-port", "0")}},
	}
}
