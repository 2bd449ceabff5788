//go:build e2e

// Package e2e tests the manager as a cluster runs it: in pods, from an image, with nothing but
// its own roles. `make test-e2e` prepares the cluster and the image.
package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"example.com/operator-workshop/operatortest/incluster"
)

const (
	// namespace is the manager's namespace. The tests that `kubebuilder create webhook` adds use this constant.
	namespace = "guestbook-system"
	// guestbookNamespace is the namespace of the tests' Guestbooks.
	guestbookNamespace = "guestbook-e2e"
)

// guestbook describes the deployed manager to the shared specs.
var guestbook = incluster.Operator{
	Namespace:  namespace,
	Deployment: "guestbook-controller-manager",
	Lease:      "guestbook.my.domain",
	Manifests:  "config/default",
	Metrics: &incluster.Metrics{
		Service:  "guestbook-controller-manager-metrics-service",
		Role:     "guestbook-metrics-reader",
		Contains: "rest_client_requests_total",
	},
	Resources:  "guestbooks",
	Trial:      guestbookNamespace,
	Samples:    []string{"--kustomize=config/samples"},
	Converged:  []string{"Ready"},
	ManagedBy:  "guestbook-controller",
	ChildKinds: "deployments,services,pods",
	Children: []incluster.Child{{
		Name: "deployment/full-guestbook",
		Drift: map[string]incluster.Drift{
			"scaled by hand":            {Patch: `{"spec":{"replicas":1}}`, Field: "{.spec.replicas}"},
			"one of our labels removed": {Patch: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, Field: "{.metadata.labels}"},
		},
	}, {
		Name: "service/full-guestbook",
		Drift: map[string]incluster.Drift{
			"no pods behind it": {Patch: `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`, Field: "{.spec.selector}"},
		},
	}},
	Collision: &incluster.Collision{
		Foreign:   []string{"deployment", "taken", "--image=nginxinc/nginx-unprivileged:1.29.1-alpine", "--replicas=0"},
		Child:     "deployment/taken",
		Resource:  `{apiVersion: webapp.my.domain/v1, kind: Guestbook, metadata: {name: taken}, spec: {configMapName: page-settings}}`,
		Name:      "guestbook/taken",
		Condition: "Ready",
	},
}

func TestE2E(t *testing.T) { incluster.Run(t, "Guestbook e2e") }

var _ = BeforeSuite(func(ctx SpecContext) { incluster.Check(ctx, guestbook) }, NodeTimeout(time.Minute))
