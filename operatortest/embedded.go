package operatortest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	defaultNodes = 2
	// planeAttempts allows for a port that another program took between being found free and being bound.
	planeAttempts = 3
)

// stages tell kwok how simulated nodes and pods behave.
//
//go:embed stages.yaml
var stages []byte

// startEmbedded runs a control plane for this process alone.
func (c *Cluster) startEmbedded(ctx context.Context) error {
	var err error
	if c.processes, err = newProcesses(c.dir); err != nil {
		return err
	}
	// envtest knows no context: an interrupted start ends its programs, and so its wait for them.
	defer context.AfterFunc(ctx, c.processes.release)()

	if err := c.startPlane(ctx); err != nil {
		return err
	}
	if err := c.startSimulation(); err != nil {
		return err
	}
	if err := c.install(ctx); err != nil {
		return err
	}
	// The garbage collector looks for new kinds every 30 s only, so it starts when they are there.
	if err := c.startControllers(); err != nil {
		return err
	}
	if err := c.createNodes(ctx); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

// startPlane runs etcd and kube-apiserver and connects to them.
func (c *Cluster) startPlane(ctx context.Context) error {
	err := c.tryPlane()
	for attempt := 1; err != nil && attempt < planeAttempts && ctx.Err() == nil; attempt++ {
		err = c.tryPlane()
	}
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	admin, err := c.plane.AddUser(
		envtest.User{Name: "admin", Groups: []string{"system:masters"}},
		&rest.Config{QPS: -1}, // tests send bursts; the server has limits of its own
	)
	if err != nil {
		return fmt.Errorf("make the administrator: %w", err)
	}
	content, err := admin.KubeConfig()
	if err != nil {
		return fmt.Errorf("make the kubeconfig: %w", err)
	}
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return c.connect(admin.Config(), kubeconfig)
}

func (c *Cluster) tryPlane() error {
	etcd, err := c.processes.launcher(c.assets, "etcd")
	if err != nil {
		return err
	}
	apiServer, err := c.processes.launcher(c.assets, "kube-apiserver")
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp(c.dir, "etcd-")
	if err != nil {
		return fmt.Errorf("create etcd's folder: %w", err)
	}
	certificates, err := os.MkdirTemp(c.dir, "apiserver-")
	if err != nil {
		return fmt.Errorf("create the API server's folder: %w", err)
	}
	c.plane = &envtest.ControlPlane{
		Etcd:        &envtest.Etcd{Path: etcd, DataDir: data, StartTimeout: processTimeout},
		APIServer:   &envtest.APIServer{Path: apiServer, CertDir: certificates, StartTimeout: processTimeout},
		KubectlPath: filepath.Join(c.assets, "kubectl"),
	}
	// envtest switches service accounts off because nothing would create them; here the controller manager does.
	c.plane.APIServer.Configure().Disable("disable-admission-plugins")
	// Left to itself the server looks for the machine's outward address, and ends on a machine without a network.
	// A loopback address is no endpoint that the Service "kubernetes" may have.
	c.plane.APIServer.Configure().Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	// The range that kubeadm chooses. The server's own has room for 254 Services.
	c.plane.APIServer.Configure().Set("service-cluster-ip-range", "10.96.0.0/16")
	for flag, value := range c.APIServerFlags {
		c.plane.APIServer.Configure().Set(flag, value)
	}
	if err := c.plane.Start(); err != nil {
		return fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	return nil
}

// startSimulation runs what turns a bound pod into a running one.
func (c *Cluster) startSimulation() error {
	config := filepath.Join(c.dir, "kwok.yaml")
	if err := c.writeStages(config); err != nil {
		return err
	}
	return errors.Join(
		c.processes.start(c.assets, "kube-scheduler",
			"--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--secure-port=0",
			"--kube-api-qps=1000", "--kube-api-burst=2000"),
		c.processes.start(c.assets, "kwok",
			"--kubeconfig="+c.Kubeconfig, "--config="+config, "--manage-all-nodes=true",
			"--node-lease-duration-seconds=40"), // a node whose lease is not renewed is taken for lost
	)
}

// writeStages writes the kit's stages and the suite's own into one file.
func (c *Cluster) writeStages(path string) error {
	documents := [][]byte{stages}
	for _, file := range c.Stages {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the stages: %w", err)
		}
		documents = append(documents, content)
	}
	if err := os.WriteFile(path, bytes.Join(documents, []byte("\n---\n")), 0o600); err != nil {
		return fmt.Errorf("write kwok's configuration: %w", err)
	}
	return nil
}

// startControllers runs the controllers of Kubernetes itself.
func (c *Cluster) startControllers() error {
	ca := filepath.Join(c.dir, "ca.crt")
	if err := os.WriteFile(ca, c.Config.CAData, 0o600); err != nil {
		return fmt.Errorf("write the API server's certificate: %w", err)
	}
	return c.processes.start(c.assets, "kube-controller-manager",
		"--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--root-ca-file="+ca, // published in every namespace, where pods look for it
		// Each controller by its own name, as in other clusters: admission rules can tell them from people.
		"--use-service-account-credentials=true",
		"--kube-api-qps=1000", "--kube-api-burst=2000")
}

func (c *Cluster) createNodes(ctx context.Context) error {
	count := c.Nodes
	if count == 0 {
		count = defaultNodes
	}
	for i := range count {
		if err := c.admin.Create(ctx, simulatedNode(fmt.Sprintf("node-%d", i))); err != nil {
			return fmt.Errorf("create node %d: %w", i, err)
		}
	}
	return nil
}

func simulatedNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// waitReady returns when the nodes are ready and the controller manager has made
// the default service account, so that pods are accepted.
func (c *Cluster) waitReady(ctx context.Context) error {
	missing := "the nodes"
	ready := func(ctx context.Context) (bool, error) {
		if err := c.processes.failed(); err != nil {
			return false, err
		}
		nodes := &corev1.NodeList{}
		if err := c.admin.List(ctx, nodes); err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		for _, node := range nodes.Items {
			if !schedulable(node) {
				missing = "node " + node.Name
				return false, nil
			}
		}
		missing = "the default service account"
		account := &corev1.ServiceAccount{}
		err := c.admin.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "default"}, account)
		return err == nil, client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, ready); err != nil {
		return fmt.Errorf("wait for %s: %w", missing, err)
	}
	return nil
}

// schedulable reports whether pods can run on the node: it is ready, and the
// controller manager has taken off the taint that every new node starts with.
func schedulable(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// stopEmbedded ends the programs. They are killed, so envtest finds them gone
// unless the start was interrupted between two of them.
func (c *Cluster) stopEmbedded() error {
	if c.processes == nil {
		return nil
	}
	errs := []error{c.processes.kill()}
	if c.plane != nil {
		if err := c.plane.Stop(); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("stop etcd and kube-apiserver: %w", err))
		}
	}
	c.processes, c.plane = nil, nil
	return errors.Join(errs...)
}
