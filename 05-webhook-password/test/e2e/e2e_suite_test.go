//go:build e2e

// Package e2e tests the operator as a cluster runs it: in pods, from an image, with only its own
// roles, and with an API server that calls its webhooks. `make test-e2e` prepares the cluster and the image.
package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"example.com/operator-workshop/operatortest/incluster"
)

const (
	// namespace is where the operator runs.
	namespace = "password-operator-system"
	// passwordNamespace contains the tests' Passwords, except the one in protectedNamespace.
	passwordNamespace = "password-e2e"
)

// password describes the operator to the shared specs. certs says where the webhooks' certificates come from: the
// operator itself (self-managed), or cert-manager. In both cases, the manifests in config/self-managed contain all
// objects outside the operator's namespace.
func password(certs string) incluster.Operator {
	return incluster.Operator{
		Namespace:  namespace,
		Deployment: "password-operator-controller-manager",
		Lease:      "password.example.com",
		Manifests:  "config/self-managed",
		Variables:  []string{"CERTS=" + certs, "ENABLE_WEBHOOKS=true", "FORCE=1"},
		Metrics: &incluster.Metrics{
			Service:  "password-operator-controller-manager-metrics-service",
			Role:     "password-operator-metrics-reader",
			Contains: "controller_runtime_webhook_requests_total",
		},
		Resources:  "passwords",
		Trial:      passwordNamespace,
		Samples:    []string{"--kustomize=config/samples"},
		Converged:  []string{"Ready"},
		ManagedBy:  "password-operator",
		ChildKinds: "secrets",
		Children: []incluster.Child{{
			Name: "secret/password-sample",
			Drift: map[string]incluster.Drift{
				"one of our labels removed": {Patch: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, Field: "{.metadata.labels}"},
				"another policy":            {Patch: `{"metadata":{"annotations":{"secret.example.com/policy":"length=1"}}}`, Field: `{.metadata.annotations.secret\.example\.com/policy}`},
			},
		}},
		Collision: &incluster.Collision{
			Foreign:   []string{"secret", "generic", "taken", "--from-literal=password=mine"},
			Child:     "secret/taken",
			Resource:  `{apiVersion: secret.example.com/v1, kind: Password, metadata: {name: taken}}`,
			Name:      "password/taken",
			Condition: "Ready",
		},
	}
}

func TestE2E(t *testing.T) { incluster.Run(t, "Password e2e") }

var _ = BeforeSuite(func(ctx SpecContext) { incluster.Check(ctx, password("self-managed")) }, NodeTimeout(time.Minute))
