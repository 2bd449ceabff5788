//workshop:given 3.3a

package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
)

// operator describes the stage to the test kit. The sample has two pods, so that one is on standby.
var operator = operatortest.Operator{
	CRDs:           []string{"../../config/crd/bases"},
	Samples:        "../../config/samples",
	InvalidSamples: "../../config/samples/invalid",
	Sample:         "../../config/samples/webapp_v1_guestbook_full.yaml",
	Roles:          []string{"../../config/rbac/role.yaml", "../../config/rbac/leader_election_role.yaml"},
	Run:            runForKit,
	AllNamespaces:  true,
	Prepare:        makeSettings,
	Children: []operatortest.Child{{
		Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Drift: map[string]string{
			"scaled by hand":            `{"spec":{"replicas":7}}`,
			"another image":             `{"spec":{"template":{"spec":{"containers":[{"name":"page","image":"someone/else:1"}]}}}}`,
			"one of our labels removed": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			"privileges requested":      `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`,
			"pods of old settings":      `{"spec":{"template":{"metadata":{"annotations":{"webapp.my.domain/revision":"old"}}}}}`,
		},
		Foreign: map[string]string{
			"pods restarted by kubectl": `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}}}}}`,
			"a longer deadline":         `{"spec":{"progressDeadlineSeconds":900}}`,
		},
	}, {
		Kind: corev1.SchemeGroupVersion.WithKind("Service"),
		Drift: map[string]string{
			"opened to the outside": `{"spec":{"type":"NodePort"}}`,
			"no pods behind it":     `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`,
			"another target":        `{"spec":{"ports":[{"name":"http","port":80,"targetPort":1}]}}`,
		},
		Foreign: map[string]string{
			"addresses of pods that are not ready": `{"spec":{"publishNotReadyAddresses":true}}`,
		},
	}},
	// The Deployment, the Service, a first status, and two more for each of the two pods: one when the pod is created, and
	// one when it becomes ready.
	MaxWrites: 7,
	Values: map[string][]any{
		"spec.configMapName": {"page-settings", "other-settings"},
		// The schema allows 10, but more pods take longer and test nothing more.
		"spec.size": {int64(1), int64(2), int64(3)},
	},
	// The controller requeues only after failures, with backoff, for which the kit allows. While the controller has work
	// to do, it pauses for less than five seconds, even on a slow machine.
	MaxPause: 5 * time.Second,
	Unmeetable: []operatortest.Unmeetable{{
		Name:  "settings do not exist",
		Patch: `{"spec":{"configMapName":"missing"}}`,
	}},
	Normalize: hidePodNames,
}

// hidePodNames replaces the active pod's random name in the status with a fixed text, and the names of the standby pods
// with their number.
func hidePodNames(object *unstructured.Unstructured) {
	status, found := object.Object["status"].(map[string]any)
	if !found || object.GetKind() != "Guestbook" {
		return
	}
	if _, found := status["active"]; found {
		status["active"] = "a pod"
	}
	if standby, found := status["standby"].([]any); found {
		status["standby"] = int64(len(standby))
	}
}

// makeSettings creates the ConfigMaps that the kit's Guestbooks refer to. Only the one in Unmeetable must be missing.
func makeSettings(ctx context.Context, writer client.Client, namespace string) error {
	for _, name := range []string{"page-settings", "other-settings"} {
		if err := writer.Create(ctx, newSettings(namespace, name, "This is "+name)); err != nil {
			return err
		}
	}
	return nil
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
	return runManager(ctx, config, setup)
}

var _ = Describe("the shared tests", func() {
	behaviours.DescribeSchema(operator, cluster)
	behaviours.DescribeOperator(operator, cluster)
})
