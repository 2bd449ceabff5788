package main

import (
	"errors"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// foundCluster returns storedKluster's cluster in the given state.
func foundCluster(state cloud.State) *cloud.Cluster {
	return &cloud.Cluster{
		ID: "id-of-front", Name: "front", Region: "fra1", Version: "1.36.5-do.1", State: state, Endpoint: "https://front.invalid",
		Owners: []cloud.Owner{ownerOf(storedKluster())},
		Pools:  []cloud.Pool{{ID: "id-of-web", Name: "web", Size: "s-2vcpu-4gb", Count: 1, Running: 1}},
	}
}

// pendingKluster returns a Kluster with a create intent, but no cluster ID.
func pendingKluster() *klusterv1alpha1.Kluster {
	kluster := storedKluster()
	kluster.Annotations = map[string]string{klusterv1alpha1.CreatePendingAnnotation: "2026-01-01T00:00:00Z", klusterv1alpha1.ExternalAccountAnnotation: "acme"}
	return kluster
}

// recordedKluster returns a Kluster that has the ID of its cluster on record.
func recordedKluster() *klusterv1alpha1.Kluster {
	kluster := storedKluster()
	kluster.Annotations = map[string]string{klusterv1alpha1.ExternalNameAnnotation: "id-of-front", klusterv1alpha1.ExternalAccountAnnotation: "acme"}
	return kluster
}

// observedCluster returns an observation of the cluster that foundCluster returns.
func observedCluster(state cloud.State) observation {
	return observation{account: "acme", cluster: foundCluster(state)}
}

// statusOf calls newStatus, which must return a status.
func statusOf(t *testing.T, kluster *klusterv1alpha1.Kluster, observed observation, next result, blocking *blockedError) *klusterv1alpha1.KlusterStatus {
	t.Helper()
	status := newStatus(kluster, observed, next, blocking)
	NewWithT(t).Expect(status).NotTo(BeNil(), "see newStatus in status.go")
	return status
}

func TestNewConditions(t *testing.T) {
	missing := blockedByToken(klusterv1alpha1.ReasonTokenMissing, "no Secret")
	rejected := blockedByToken(klusterv1alpha1.ReasonTokenRejected, "no")
	unavailable := blocked(klusterv1alpha1.ReasonUnavailable, "wait")
	unavailable.transient = errors.New("no response")
	theirs := observedCluster(cloud.StateRunning)
	theirs.cluster.Owners = []cloud.Owner{{UID: "uid-of-another"}}
	tests := map[string]struct {
		observed observation
		// reason is the result's reason, unless blocking is set.
		reason   string
		blocking *blockedError
		// wantReady, wantProvisioned and wantCredentials each contain the expected status and reason of a condition, or
		// "" if the condition must be missing.
		wantReady, wantProvisioned, wantCredentials string
	}{
		"the cloud makes the cluster":      {observed: observedCluster(cloud.StateProvisioning), reason: "Provisioning", wantReady: "False Provisioning", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the cluster matches the spec":     {observed: observedCluster(cloud.StateRunning), reason: "Running", wantReady: "True Running", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"a pool is being changed":          {observed: observedCluster(cloud.StateRunning), reason: "Updating", wantReady: "False Updating", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"an upgrade is in progress":        {observed: observedCluster(cloud.StateUpgrading), reason: "Updating", wantReady: "False Updating", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cluster is degraded":          {observed: observedCluster(cloud.StateDegraded), reason: "Degraded", wantReady: "False Degraded", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cluster has failed":           {observed: observedCluster(cloud.StateFailed), blocking: blocked("Failed", "no room"), wantReady: "False Failed", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the cluster is being deleted":     {observed: observedCluster(cloud.StateRunning), reason: "Deleting", wantReady: "False Deleting", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cluster is gone":              {observed: observation{account: "acme"}, reason: "Deleted", wantReady: "False Deleted", wantProvisioned: "False Deleted", wantCredentials: "True TokenAccepted"},
		"the token is missing":             {blocking: missing, wantReady: "False TokenMissing", wantProvisioned: "False Provisioning", wantCredentials: "False TokenMissing"},
		"the token is rejected":            {blocking: rejected, wantReady: "False TokenRejected", wantProvisioned: "False Provisioning", wantCredentials: "False TokenRejected"},
		"the cloud does not answer":        {blocking: unavailable, wantReady: "Unknown Unavailable", wantProvisioned: "False Provisioning", wantCredentials: "Unknown Unavailable"},
		"the cloud stops answering":        {observed: observedCluster(cloud.StateRunning), blocking: unavailable, wantReady: "Unknown Unavailable", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cloud does not show it yet":   {observed: observation{account: "acme"}, blocking: blocked(klusterv1alpha1.ReasonUnavailable, "wait"), wantReady: "Unknown Unavailable", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the name is taken":                {observed: observation{account: "acme"}, blocking: blocked("NameTaken", "exists"), wantReady: "False NameTaken", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"there is no room for a Secret":    {observed: observedCluster(cloud.StateRunning), blocking: blocked("SecretRefused", "quota"), wantReady: "False SecretRefused", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cluster is another Kluster's": {observed: theirs, blocking: blocked("NotOwned", "not ours"), wantReady: "False NotOwned", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"its Secret can't be released":     {blocking: blocked("SecretRefused", "policy"), wantReady: "False SecretRefused", wantProvisioned: "False Provisioning"},
		"it is paused":                     {reason: "Paused", wantReady: "Unknown Paused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			next := result{reason: test.reason, message: "what to do"}
			if test.blocking != nil {
				next = result{reason: test.blocking.reason, message: test.blocking.message}
			}
			status := statusOf(t, pendingKluster(), test.observed, next, test.blocking)
			said := map[string]string{}
			for _, condition := range status.Conditions {
				said[condition.Type] = string(condition.Status) + " " + condition.Reason
				g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
				g.Expect(condition.Message).NotTo(BeEmpty())
			}
			want := map[string]string{
				klusterv1alpha1.ConditionReady:            test.wantReady,
				klusterv1alpha1.ConditionProvisioned:      test.wantProvisioned,
				klusterv1alpha1.ConditionCredentialsReady: test.wantCredentials,
			}
			maps.DeleteFunc(want, func(_, said string) bool { return said == "" })
			g.Expect(said).To(Equal(want), "see readyCondition, credentialsCondition and provisionedCondition in status.go")
			g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3))
		})
	}
}

func TestNewConditionsOfAKlusterThatNeverHadACluster(t *testing.T) {
	g := NewWithT(t)
	deleted := result{reason: klusterv1alpha1.ReasonDeleted, message: "nothing is left"}
	status := statusOf(t, storedKluster(), observation{account: "acme"}, deleted, nil)
	provisioned := meta.FindStatusCondition(status.Conditions, klusterv1alpha1.ConditionProvisioned)
	g.Expect(provisioned).NotTo(BeNil(), "see provisionedCondition in status.go")
	g.Expect(provisioned.Reason).To(Equal(klusterv1alpha1.ReasonDeleted), "see provisionedCondition in status.go")
}

var running = result{reason: klusterv1alpha1.ReasonRunning, message: "all is well"}

func TestNewStatusOfACluster(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	observed := observedCluster(cloud.StateRunning)
	observed.tokenSecret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "digitalocean", Finalizers: []string{tokenFinalizer(kluster)}}}
	kluster.Status = *statusOf(t, kluster, observed, running, nil)
	g.Expect(kluster.Status).To(And(
		HaveField("KlusterID", "id-of-front"), HaveField("Account", "acme"), HaveField("TokenSecret", "digitalocean"),
		HaveField("Progress", "running"), HaveField("Endpoint", "https://front.invalid"),
		HaveField("Version", "1.36.5-do.1"), HaveField("KubeconfigSecret", "front-kubeconfig"),
		HaveField("NodePools", ConsistOf(klusterv1alpha1.NodePoolStatus{Name: "web", ID: "id-of-web", Size: "s-2vcpu-4gb", Count: 1, Running: 1}))))

	wait := blocked(klusterv1alpha1.ReasonUnavailable, "wait")
	unseen := statusOf(t, kluster, observation{}, result{reason: wait.reason, message: wait.message}, wait)
	g.Expect(unseen).To(And(HaveField("KlusterID", "id-of-front"), HaveField("Progress", "running"), HaveField("NodePools", HaveLen(1))),
		"fields that could not be observed must keep their values")

	strange := observedCluster(cloud.StateDegraded)
	strange.cluster.Owners = []cloud.Owner{{UID: "uid-of-another"}}
	notOwned := statusOf(t, kluster, strange, result{reason: klusterv1alpha1.ReasonNotOwned, message: "not ours"}, blocked(klusterv1alpha1.ReasonNotOwned, "not ours"))
	g.Expect(notOwned.Progress).To(Equal("running"), "the status must not show someone else's cluster, see newStatus in status.go")
	handedOver := statusOf(t, kluster, strange, result{reason: klusterv1alpha1.ReasonDeleted, message: "gone"}, nil)
	g.Expect(handedOver.Progress).To(Equal("running"), "the status must not show a cluster that was handed over, see newStatus in status.go")
}

func TestNewConditionsOfACluster(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	observed := observedCluster(cloud.StateRunning)
	kluster.Status = *statusOf(t, kluster, observed, running, nil)
	wait := blocked(klusterv1alpha1.ReasonUnavailable, "wait")
	unseen := statusOf(t, kluster, observation{}, result{reason: wait.reason, message: wait.message}, wait)
	provisioned := meta.FindStatusCondition(unseen.Conditions, klusterv1alpha1.ConditionProvisioned)
	g.Expect(provisioned).To(HaveValue(HaveField("Status", metav1.ConditionTrue)), "the condition must stay True, because the cluster has run")

	kluster.Generation++
	g.Expect(statusOf(t, kluster, observed, running, nil).Conditions).To(HaveEach(HaveField("ObservedGeneration", kluster.Generation)))
}

func TestNewConditionsSayThatTheTokenWillGo(t *testing.T) {
	g := NewWithT(t)
	message := func(deleted *metav1.Time) string {
		observed := observedCluster(cloud.StateRunning)
		observed.tokenSecret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "digitalocean", DeletionTimestamp: deleted}}
		status := statusOf(t, recordedKluster(), observed, running, nil)
		credentials := meta.FindStatusCondition(status.Conditions, klusterv1alpha1.ConditionCredentialsReady)
		g.Expect(credentials).NotTo(BeNil(), "see credentialsCondition in status.go")
		return credentials.Message
	}
	now := metav1.Now()
	g.Expect(message(nil)).NotTo(ContainSubstring("deleted"))
	g.Expect(message(&now)).To(ContainSubstring("deleted"), "the author of the Kluster may not know that the Secret was deleted")
}

func TestNewStatusRemembersTheReadyGeneration(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	report := func(reason string) int64 {
		kluster.Status = *statusOf(t, kluster, observedCluster(cloud.StateRunning), result{reason: reason, message: "what happened"}, nil)
		return kluster.Status.ReadyGeneration
	}
	g.Expect(report(klusterv1alpha1.ReasonProvisioning)).To(BeZero(), "the cluster has never matched the spec, see newStatus in status.go")
	g.Expect(report(klusterv1alpha1.ReasonRunning)).To(Equal(kluster.Generation), "see newStatus in status.go")
	for _, reason := range []string{klusterv1alpha1.ReasonUnavailable, klusterv1alpha1.ReasonPaused, klusterv1alpha1.ReasonDegraded, klusterv1alpha1.ReasonTokenRejected} {
		g.Expect(report(reason)).To(Equal(kluster.Generation), "%s says nothing about whether the cluster has matched the spec, see newStatus in status.go", reason)
	}
	g.Expect(report(klusterv1alpha1.ReasonUpdating)).To(BeZero(), "the cluster is being changed, see newStatus in status.go")
}

func TestNewStatusIsStable(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	observed := observedCluster(cloud.StateRunning)
	kluster.Status = *statusOf(t, kluster, observed, running, nil)
	for i := range kluster.Status.Conditions {
		kluster.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	}
	g.Expect(statusOf(t, kluster, observed, running, nil)).To(HaveValue(Equal(kluster.Status)), "the same observation must not cause a write")
	kluster.Status.Conditions = append(kluster.Status.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue})
	g.Expect(statusOf(t, kluster, observed, running, nil)).To(HaveValue(Equal(kluster.Status)), "conditions of other controllers must stay")
}

func TestNewStatusBeforeTheFirstRequest(t *testing.T) {
	g := NewWithT(t)
	missing := blockedByToken(klusterv1alpha1.ReasonTokenMissing, "no Secret")
	status := statusOf(t, storedKluster(), observation{}, result{reason: missing.reason, message: missing.message}, missing)
	g.Expect(meta.FindStatusCondition(status.Conditions, klusterv1alpha1.ConditionProvisioned)).To(BeNil(), "no cluster was requested")
	g.Expect(status).To(And(HaveField("KlusterID", ""), HaveField("Account", ""), HaveField("TokenSecret", "")))
}

func TestAnnounce(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: klusterv1alpha1.ConditionReady, Status: status, Reason: reason, Message: "what happened"}
	}
	provisioning, running := ready(metav1.ConditionFalse, klusterv1alpha1.ReasonProvisioning), ready(metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
	taken := ready(metav1.ConditionFalse, klusterv1alpha1.ReasonNameTaken)
	tests := map[string]struct {
		before, after *metav1.Condition
		// want is the expected event, or "" if there must be none.
		want string
	}{
		"a new Kluster":                {after: provisioning, want: "Normal Provisioning what happened"},
		"a Kluster becomes ready":      {before: provisioning, after: running, want: "Normal Running what happened"},
		"a ready Kluster stays ready":  {before: running, after: running},
		"a cluster is being changed":   {before: running, after: ready(metav1.ConditionFalse, klusterv1alpha1.ReasonUpdating), want: "Normal Updating what happened"},
		"a cluster is lost":            {before: running, after: ready(metav1.ConditionFalse, klusterv1alpha1.ReasonLost), want: "Warning Lost what happened"},
		"a name turns out to be taken": {before: provisioning, after: taken, want: "Warning NameTaken what happened"},
		"a name stays taken":           {before: taken, after: taken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(1)
			kluster := storedKluster()
			if test.before != nil {
				kluster.Status.Conditions = []metav1.Condition{*test.before}
			}
			(&controller{recorder: recorder}).announce(kluster, test.after)
			if test.want == "" {
				g.Expect(recorder.Events).To(BeEmpty())
				return
			}
			g.Expect(recorder.Events).NotTo(BeEmpty(), "%q must be recorded as an event", test.want)
			g.Expect(recorder.Events).To(Receive(Equal(test.want)))
		})
	}
}
