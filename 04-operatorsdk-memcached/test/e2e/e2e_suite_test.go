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

// memcachedNamespace is the namespace of the tests' Memcacheds.
const memcachedNamespace = "memcached-e2e"

// memcached describes the deployed manager to the shared specs.
var memcached = incluster.Operator{
	Namespace:  "memcached-operator-system",
	Deployment: "memcached-operator-controller-manager",
	Lease:      "memcached.example.com",
	Manifests:  "config/default",
	Metrics: &incluster.Metrics{
		Service:  "memcached-operator-controller-manager-metrics-service",
		Role:     "memcached-operator-metrics-reader",
		Contains: "rest_client_requests_total",
	},
	Resources:  "memcacheds",
	Trial:      memcachedNamespace,
	Samples:    []string{"--kustomize=config/samples"},
	Converged:  []string{"Available", "Progressing=false"},
	ManagedBy:  "memcached-operator",
	ChildKinds: "deployments,services,pods,poddisruptionbudgets",
	Children: []incluster.Child{{
		Name: "deployment/memcached-full",
		Drift: map[string]incluster.Drift{
			"scaled by hand":            {Patch: `{"spec":{"replicas":1}}`, Field: "{.spec.replicas}"},
			"one of our labels removed": {Patch: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, Field: "{.metadata.labels}"},
		},
	}, {
		Name: "service/memcached-full",
		Drift: map[string]incluster.Drift{
			"no pods selected": {Patch: `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`, Field: "{.spec.selector}"},
		},
	}, {
		Name: "poddisruptionbudget/memcached-full",
		Drift: map[string]incluster.Drift{
			"all pods may be evicted": {Patch: `{"spec":{"maxUnavailable":"100%"}}`, Field: "{.spec.maxUnavailable}"},
		},
	}},
	Collision: &incluster.Collision{
		Foreign:   []string{"deployment", "taken", "--image=docker.io/library/memcached:1.6.39-alpine", "--replicas=0"},
		Child:     "deployment/taken",
		Resource:  `{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: taken}, spec: {size: 1}}`,
		Name:      "memcached/taken",
		Condition: "Available",
	},
}

func TestE2E(t *testing.T) { incluster.Run(t, "Memcached e2e") }

var _ = BeforeSuite(func(ctx SpecContext) { incluster.Check(ctx, memcached) }, NodeTimeout(time.Minute))
