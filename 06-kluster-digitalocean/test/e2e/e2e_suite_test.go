//go:build e2e

// Package e2e tests the operator as it runs in a cluster: in pods, from an image, and with only its own roles. An
// emulator of the cloud also runs in a pod. `make test-e2e` prepares the cluster and the images.
package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"example.com/operator-workshop/operatortest/incluster"
)

const (
	// namespace is where the operator runs.
	namespace = "kluster-system"
	// klusterNamespace is the namespace of the Klusters that the tests create.
	klusterNamespace = "kluster-e2e"
)

// kluster describes the deployed operator to the shared specs.
var kluster = incluster.Operator{
	Namespace:  namespace,
	Deployment: "kluster-operator",
	Lease:      "kluster-operator",
	Manifests:  "config/default",
	Variables:  []string{"FORCE=1"}, // undeploy deletes the specs' Klusters
	Deployed:   useEmulator,
	Resources:  "klusters",
	Trial:      klusterNamespace,
	Prepare:    []string{"create", "secret", "generic", "digitalocean", "--type=inspirit941.dev/cloud-token", "--from-literal=token=demo"},
	Samples:    []string{"--filename=config/samples"},
	Converged:  []string{"Ready"},
	ManagedBy:  "kluster-operator",
	ChildKinds: "secrets",
	Children: []incluster.Child{{
		Name: "secret/full-kubeconfig",
		Drift: map[string]incluster.Drift{
			"one of our labels removed": {Patch: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, Field: "{.metadata.labels}"},
			"another kubeconfig":        {Patch: `{"data":{"kubeconfig":"c29tZWJvZHktZWxzZQ=="}}`, Field: "{.data.kubeconfig}", Renewed: true},
		},
	}},
	Collision: &incluster.Collision{
		Foreign: []string{"secret", "generic", "taken-kubeconfig", "--from-literal=kubeconfig=mine"},
		Child:   "secret/taken-kubeconfig",
		Resource: `{apiVersion: inspirit941.dev/v1alpha1, kind: Kluster, metadata: {name: taken}, spec: {name: taken, region: fra1,
version: latest, tokenSecret: {name: digitalocean}, nodePools: [{name: workers, size: s-2vcpu-4gb, count: 1}]}}`,
		Name:      "kluster/taken",
		Condition: "Ready",
	},
}

func TestE2E(t *testing.T) { incluster.Run(t, "Kluster e2e") }

var _ = BeforeSuite(func(ctx SpecContext) { incluster.Check(ctx, kluster) }, NodeTimeout(time.Minute))

// useEmulator makes the operator call the emulator, and trust its certificate.
func useEmulator(ctx context.Context) {
	GinkgoHelper()
	incluster.Kubectl(ctx, "create", "configmap", "do-emulator", "--from-literal=tls.crt="+cloudCertificate.certificate, "--namespace="+namespace)
	incluster.Kubectl(ctx, "patch", "deployment/kluster-operator", "--namespace="+namespace, "--patch-file=test/e2e/operator-patch.yaml")
	incluster.Kubectl(ctx, "rollout", "status", "deployment/kluster-operator", "--namespace="+namespace, "--timeout=4m")
}
