package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

// operator describes the stage to the test kit. Its Sample has every field of the spec.
var operator = operatortest.Operator{
	CRDs:           []string{"../../config/crd/bases"},
	Samples:        "../../config/samples",
	InvalidSamples: "../../config/samples/invalid",
	Sample:         "../../config/samples/secret_v1_password_full.yaml",
	Roles:          []string{"../../config/rbac/role.yaml", "../../config/rbac/leader_election_role.yaml"},
	Run:            runForKit,
	AllNamespaces:  true,
	Children: []operatortest.Child{{
		Kind: corev1.SchemeGroupVersion.WithKind("Secret"),
		Name: secretNameOf,
		Drift: map[string]string{
			"another password":          `{"data":{"password":"c29tZWJvZHktY2hvc2UtdGhpcw=="}}`,
			"no password":               `{"data":{"password":null}}`,
			"another fingerprint key":   `{"data":{"fingerprint-key":"c29tZWJvZHktY2hvc2UtdGhpcw=="}}`,
			"another time":              `{"metadata":{"annotations":{"secret.example.com/rotated-at":"2026-01-01T00:00:00Z"}}}`,
			"another policy":            `{"metadata":{"annotations":{"secret.example.com/policy":"length=1"}}}`,
			"one of our labels removed": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
		},
		Foreign: map[string]string{
			"another key": `{"data":{"theirs":"dGhlaXJz"}}`,
		},
	}},
	// One write for the Secret, and one for the status.
	MaxWrites: 2,
	Values: map[string][]any{
		"spec.secretName":     {"database-login", "other-login"},
		"spec.rotation.after": {"720h", "1h"},
		"spec.policy.require": {requirements(6, 2), requirements(0, 8), requirements(10, 30), []any{}},
	},
	// If the name of a Password's Secret is taken, the Password is requeued after a second at first, and later after as
	// long as it has been blocked so far, up to maxBlockedDelay. MaxPause need not cover the longer delays: the kit
	// always allows at least four times the longest gap so far between two of the operator's requests.
	MaxPause:  5 * time.Second,
	Immutable: []string{"spec.secretName"},
	Normalize: hideRandom,
	LeftOut:   map[string]string{"growth/memory": "this suite keeps every version of every Password in memory, to search them for passwords at the end"},
}

// requirements returns the list that asks for these numbers of digits and symbols.
func requirements(digits, symbols int64) []any {
	return []any{map[string]any{"class": "Digit", "count": digits}, map[string]any{"class": "Symbol", "count": symbols}}
}

// secretNameOf returns the name of a Password's Secret.
func secretNameOf(password *unstructured.Unstructured) string {
	if name, found, _ := unstructured.NestedString(password.Object, "spec", "secretName"); found {
		return name
	}
	return password.GetName()
}

// hideRandom removes values that are random or depend on the time. It replaces the time of
// the next rotation with the duration between the last rotation and the next.
func hideRandom(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "Secret":
		unstructured.RemoveNestedField(object.Object, "data", "password")
		unstructured.RemoveNestedField(object.Object, "data", "fingerprint-key")
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "secret.example.com/rotated-at")
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "secret.example.com/fingerprint")
	case "Password":
		unstructured.RemoveNestedField(object.Object, "status", "fingerprint")
		made, _, _ := unstructured.NestedString(object.Object, "status", "lastRotated")
		next, _, _ := unstructured.NestedString(object.Object, "status", "nextRotation")
		from, errFrom := time.Parse(time.RFC3339, made)
		to, errTo := time.Parse(time.RFC3339, next)
		if errFrom == nil && errTo == nil {
			_ = unstructured.SetNestedField(object.Object, "after "+to.Sub(from).String(), "status", "nextRotation")
		}
		unstructured.RemoveNestedField(object.Object, "status", "lastRotated")
	}
}

// runForKit runs the manager with the options that the kit asks for.
func runForKit(ctx context.Context, config *rest.Config, wishes operatortest.RunOptions) error {
	options := testOptions(wishes.Namespace)
	if wishes.Resync > 0 {
		options.ResyncPeriod = wishes.Resync
	}
	setup := managerOptions(ctx, options)
	if election := wishes.LeaderElection; election != nil {
		setup.LeaderElection, setup.LeaderElectionNamespace = true, election.Namespace
		setup.LeaseDuration, setup.RenewDeadline, setup.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
	}
	return runManager(ctx, config, setup, options, clock.RealClock{})
}

var _ = Describe("the shared tests", func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
