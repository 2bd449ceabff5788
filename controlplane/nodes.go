package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"

	"example.com/operator-workshop/internal/private"
)

const defaultNodes = 2

// stagesPrefix is the prefix of the name of kwok's configuration file.
const stagesPrefix = "kwok-"

// SimulatedNode is the annotation of nodes that kwok simulates. Their pods run no containers.
const SimulatedNode = "kwok.x-k8s.io/node"

// stages tell kwok how simulated nodes and pods behave.
//
//go:embed stages.yaml
var stages []byte

// writeStages writes the package's stages and the caller's own into one file, and returns its name.
func (c *ControlPlane) writeStages() (string, error) {
	documents := [][]byte{stages}
	for _, file := range c.options.Stages {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the stages: %w", err)
		}
		documents = append(documents, content)
	}
	content := bytes.Join(documents, []byte("\n---\n"))
	sum := sha256.Sum256(content)
	name := stagesPrefix + hex.EncodeToString(sum[:4]) + ".yaml"
	return name, private.WriteFile(c.path(name), content)
}

// createNodes makes the simulated nodes of a new control plane.
func (c *ControlPlane) createNodes(ctx context.Context, r record) error {
	count := c.options.Nodes
	if count == 0 {
		count = defaultNodes
	}
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		err := c.request(ctx, r, "kube-apiserver", http.MethodPost, "/api/v1/nodes", simulatedNode(name), nil)
		var refused statusError
		if errors.As(err, &refused) && refused.code == http.StatusConflict {
			continue // it already exists
		}
		if err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return nil
}

// object is a Kubernetes object as JSON.
type object = map[string]any

func simulatedNode(name string) object {
	room := object{"cpu": "32", "memory": "256Gi", "pods": "1000"}
	return object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{
			"name":        name,
			"labels":      object{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH},
			"annotations": object{SimulatedNode: "fake"},
		},
		"status": object{"capacity": room, "allocatable": room},
	}
}

// waitUsable waits until pods can be created and, if there are nodes, scheduled. First the controller manager must create
// the default service account, without which admission refuses pods, and remove the taint that every new node starts
// with.
func (c *ControlPlane) waitUsable(ctx context.Context, r record) error {
	missing := ""
	err := c.await(ctx, "ready nodes and the default service account", func(ctx context.Context) bool {
		missing = c.lacking(ctx, r)
		return missing == ""
	}, Components...)
	if err != nil && missing != "" {
		return fmt.Errorf("%w; still missing: %s", err, missing)
	}
	return err
}

// node is the part of a Node that says whether pods can run on it.
type node struct {
	Metadata struct{ Name string }
	Spec     struct{ Taints []struct{ Key string } }
	Status   struct{ Conditions []condition }
}

type condition struct{ Type, Status string }

// lacking returns what is still missing before pods can run, or "".
func (c *ControlPlane) lacking(ctx context.Context, r record) string {
	var nodes struct{ Items []node }
	if err := c.ask(ctx, r, "kube-apiserver", "/api/v1/nodes", &nodes); err != nil {
		return "an answer from the API server"
	}
	for _, node := range nodes.Items {
		if !node.schedulable() {
			return "the readiness of node " + node.Metadata.Name
		}
	}
	if err := c.ask(ctx, r, "kube-apiserver", "/api/v1/namespaces/default/serviceaccounts/default", nil); err != nil {
		return "the default service account"
	}
	return ""
}

// schedulable reports whether the node is ready and has none of the taints that Kubernetes sets while a node isn't ready
// or can't be reached. Other taints don't matter here.
func (n node) schedulable() bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == "node.kubernetes.io/not-ready" || taint.Key == "node.kubernetes.io/unreachable" {
			return false
		}
	}
	return slices.Contains(n.Status.Conditions, condition{Type: "Ready", Status: "True"})
}
