package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// foundCluster is what the cloud has of storedKluster.
func foundCluster(state cloud.State) *cloud.Cluster {
	return &cloud.Cluster{
		ID: "id-of-front", Name: "front", Region: "fra1", Version: "1.36.5-do.1", State: state, Endpoint: "https://front.invalid",
		Pools: []cloud.Pool{{ID: "id-of-web", Name: "web", Size: "s-2vcpu-4gb", Count: 1, Running: 1}},
	}
}

// intendedKluster is one whose status says already that the cluster is being made.
func intendedKluster() *klusterv1alpha1.Kluster {
	kluster := storedKluster()
	kluster.Status = *newStatus(kluster, findings{})
	return kluster
}

func TestNewStatus(t *testing.T) {
	obstructed := func(reason string, credentials bool) *obstacle {
		return &obstacle{reason: reason, message: "what to do", credentials: credentials}
	}
	running := foundCluster(cloud.StateRunning)
	tests := map[string]struct {
		found findings
		// The conditions, as status and reason.
		wantReady, wantProvisioned, wantCredentials string
	}{
		"nothing is there yet":          {found: findings{}, wantReady: "False Provisioning", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the cloud makes the cluster":   {found: findings{cluster: foundCluster(cloud.StateProvisioning)}, wantReady: "False Provisioning", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"all is well":                   {found: findings{cluster: running, kubeconfigSecret: "front-kubeconfig"}, wantReady: "True Running", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"a pool is being changed":       {found: findings{cluster: running, kubeconfigSecret: "front-kubeconfig", updating: true}, wantReady: "False Updating", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cloud upgrades":            {found: findings{cluster: foundCluster(cloud.StateUpgrading)}, wantReady: "False Updating", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the cluster is degraded":       {found: findings{cluster: foundCluster(cloud.StateDegraded), obstacle: obstructed("Degraded", false)}, wantReady: "False Degraded", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the cluster has failed":        {found: findings{cluster: foundCluster(cloud.StateFailed), obstacle: obstructed("Failed", false)}, wantReady: "False Failed", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"the cluster is being deleted":  {found: findings{cluster: running, deleting: true}, wantReady: "False Deleting", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the token is missing":          {found: findings{obstacle: obstructed("TokenMissing", true)}, wantReady: "False TokenMissing", wantProvisioned: "False Provisioning", wantCredentials: "False TokenMissing"},
		"the token is rejected":         {found: findings{obstacle: obstructed("TokenRejected", true)}, wantReady: "False TokenRejected", wantProvisioned: "False Provisioning", wantCredentials: "False TokenRejected"},
		"the cloud does not answer":     {found: findings{obstacle: obstructed("Unavailable", false)}, wantReady: "False Unavailable", wantProvisioned: "False Provisioning", wantCredentials: "Unknown Unavailable"},
		"the cloud stops to answer":     {found: findings{cluster: running, obstacle: obstructed("Unavailable", false)}, wantReady: "False Unavailable", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
		"the name is taken":             {found: findings{obstacle: obstructed("NameTaken", false)}, wantReady: "False NameTaken", wantProvisioned: "False Provisioning", wantCredentials: "True TokenAccepted"},
		"there is no room for a Secret": {found: findings{cluster: running, obstacle: obstructed("SecretRefused", false)}, wantReady: "False SecretRefused", wantProvisioned: "True Running", wantCredentials: "True TokenAccepted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := newStatus(intendedKluster(), test.found)
			said := map[string]string{}
			for _, condition := range status.Conditions {
				said[condition.Type] = string(condition.Status) + " " + condition.Reason
				g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
				g.Expect(condition.Message).NotTo(BeEmpty())
			}
			g.Expect(said).To(Equal(map[string]string{
				klusterv1alpha1.ConditionReady:            test.wantReady,
				klusterv1alpha1.ConditionProvisioned:      test.wantProvisioned,
				klusterv1alpha1.ConditionCredentialsReady: test.wantCredentials,
			}), "see newStatus in status.go")
			g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3))
		})
	}
}

func TestNewStatusOfACluster(t *testing.T) {
	g := NewWithT(t)
	kluster := intendedKluster()
	kluster.Status = *newStatus(kluster, findings{cluster: foundCluster(cloud.StateRunning), kubeconfigSecret: "front-kubeconfig"})
	g.Expect(kluster.Status).To(And(
		HaveField("KlusterID", "id-of-front"), HaveField("Progress", "running"), HaveField("Endpoint", "https://front.invalid"),
		HaveField("Version", "1.36.5-do.1"), HaveField("KubeconfigSecret", "front-kubeconfig"),
		HaveField("NodePools", ConsistOf(klusterv1alpha1.NodePoolStatus{Name: "web", ID: "id-of-web", Size: "s-2vcpu-4gb", Count: 1, Running: 1}))))

	unseen := newStatus(kluster, findings{obstacle: &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: "wait"}})
	g.Expect(unseen).To(And(HaveField("KlusterID", "id-of-front"), HaveField("Progress", "running"), HaveField("NodePools", HaveLen(1))),
		"what could not be looked at stays as it was")
	provisioned := meta.FindStatusCondition(unseen.Conditions, klusterv1alpha1.ConditionProvisioned)
	g.Expect(provisioned).To(HaveValue(HaveField("Status", metav1.ConditionTrue)), "it says that the cluster has run")

	another := foundCluster(cloud.StateRunning)
	another.ID = "another"
	g.Expect(newStatus(kluster, findings{cluster: another}).KlusterID).To(Equal("id-of-front"), "the ID is recorded once")
}

func TestNewStatusIsStable(t *testing.T) {
	g := NewWithT(t)
	kluster := intendedKluster()
	found := findings{cluster: foundCluster(cloud.StateRunning), kubeconfigSecret: "front-kubeconfig"}
	kluster.Status = *newStatus(kluster, found)
	for i := range kluster.Status.Conditions {
		kluster.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	}
	g.Expect(newStatus(kluster, found)).To(HaveValue(Equal(kluster.Status)), "the same findings must not become a write")
	kluster.Status.Conditions = append(kluster.Status.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue})
	g.Expect(newStatus(kluster, found)).To(HaveValue(Equal(kluster.Status)), "conditions of other controllers stay")
}

// Who deletes a Kluster that never had a token must not wait for one: see removeCluster in finalize.go.
func TestNewStatusWithoutIntention(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	kluster.Status = *newStatus(kluster, findings{obstacle: &obstacle{reason: klusterv1alpha1.ReasonTokenMissing, message: "no Secret", credentials: true}})
	g.Expect(isIntended(kluster)).To(BeFalse(), "nobody has asked the cloud for anything")
	kluster.Status = *newStatus(kluster, findings{})
	g.Expect(isIntended(kluster)).To(BeTrue())
}

func TestAnnounce(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: klusterv1alpha1.ConditionReady, Status: status, Reason: reason, Message: "what happened"}
	}
	provisioning, running := ready(metav1.ConditionFalse, klusterv1alpha1.ReasonProvisioning), ready(metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
	taken := ready(metav1.ConditionFalse, klusterv1alpha1.ReasonNameTaken)
	tests := map[string]struct {
		before, after *metav1.Condition
		// want is the event; "" for none.
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
			g.Expect(recorder.Events).To(Receive(Equal(test.want)))
		})
	}
}
