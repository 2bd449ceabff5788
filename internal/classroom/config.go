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
}

// writeConfig writes the file that `kwokctl create cluster --config` reads.
func (e *embedded) writeConfig(chosen ports) error {
	bin := func(name string) string { return filepath.Join(e.options.Repo.Bin(), name) }
	config := kwokctlConfiguration{
		Kind:       "KwokctlConfiguration",
		APIVersion: "config.kwok.x-k8s.io/v1alpha1",
		Options: map[string]any{
			"runtime": "binary",
			// kwokctl's default is every address, and its etcd asks nobody for a password.
			"bindAddress":                 "127.0.0.1",
			"disableQPSLimits":            true,
			"kubeApiserverPort":           chosen.APIServer,
			"etcdPort":                    chosen.Etcd,
			"etcdPeerPort":                chosen.EtcdPeer,
			"kubeControllerManagerPort":   chosen.ControllerManager,
			"kubeSchedulerPort":           chosen.Scheduler,
			"kwokControllerPort":          chosen.Kwok,
			"etcdBinary":                  bin("etcd"),
			"etcdctlBinary":               bin("etcdctl"),
			"etcdutlBinary":               bin("etcdutl"),
			"kubectlBinary":               bin("kubectl"),
			"kubeApiserverBinary":         bin("kube-apiserver"),
			"kubeControllerManagerBinary": bin("kube-controller-manager"),
			"kubeSchedulerBinary":         bin("kube-scheduler"),
			"kwokControllerBinary":        bin("kwok"),
		},
		ComponentsPatches: []componentPatch{
			{Name: "kube-apiserver", ExtraArgs: []extraArg{
				// Left to itself the server looks for the machine's outward address, and does
				// not start on one that has none, such as a laptop without a network.
				{Key: "advertise-address", Value: "127.0.0.1"},
				// A loopback address is no valid endpoint for the Service "kubernetes".
				{Key: "endpoint-reconciler-type", Value: "none"},
				// The range that kubeadm chooses. The server's own has room for 254 Services.
				{Key: "service-cluster-ip-range", Value: "10.96.0.0/16"},
			}, ExtraEnvs: []extraEnv{
				// A tighter garbage collector: what a class of clusters on one host needs is memory.
				{Name: "GOGC", Value: "50"},
			}},
			// There is one of each, so an election only costs: seconds at the start, and a write every 2 s.
			{Name: "kube-controller-manager", ExtraArgs: []extraArg{
				{Key: "leader-elect", Value: "false"},
				// Each controller by its own name, as in other clusters: admission rules can tell them from people.
				{Key: "use-service-account-credentials", Value: "true"},
			}},
			{Name: "kube-scheduler", ExtraArgs: []extraArg{{Key: "leader-elect", Value: "false"}}},
		},
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write kwokctl's configuration: %w", err)
	}
	return writeFile(e.path(".yaml"), content)
}
