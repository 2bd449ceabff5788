package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	klusterfake "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/fake"
	"example.com/operator-workshop/doks"
)

func TestProgress(t *testing.T) {
	const poll, retry, observe = 10 * time.Second, 30 * time.Second, 5 * time.Minute
	tests := map[string]struct {
		state cloud.State
		// running is how many machines are running in the pool, which should have one.
		running int
		// ready means that the cluster has matched the current spec. changing and upgrading mean that UpdatePools and
		// Upgrade report a change.
		ready, changing, upgrading bool
		wantReason                 string
		wantAfter                  time.Duration
		// wantError means that act returns an error.
		wantError bool
	}{
		"it is being made":                {state: cloud.StateProvisioning, wantReason: "Provisioning", wantAfter: poll},
		"it is in an unknown state":       {state: "thinking", wantReason: "Provisioning", wantAfter: poll},
		"it is being upgraded":            {state: cloud.StateUpgrading, running: 1, wantReason: "Updating", wantAfter: poll},
		"it could not be made":            {state: cloud.StateFailed, wantReason: "Failed", wantAfter: observe, wantError: true},
		"someone deletes it":              {state: cloud.StateDeleting, running: 1, wantReason: "Lost", wantError: true},
		"someone has deleted it":          {state: cloud.StateDeleted, wantReason: "Lost", wantError: true},
		"it runs":                         {state: cloud.StateRunning, running: 1, wantReason: "Running", wantAfter: observe},
		"it runs with problems":           {state: cloud.StateDegraded, running: 1, wantReason: "Degraded", wantAfter: retry},
		"a pool had to be changed":        {state: cloud.StateRunning, running: 1, changing: true, wantReason: "Updating", wantAfter: poll},
		"the version had to be changed":   {state: cloud.StateRunning, running: 1, upgrading: true, wantReason: "Updating", wantAfter: poll},
		"its machines aren't running yet": {state: cloud.StateRunning, wantReason: "Updating", wantAfter: poll},
		"a machine is replaced":           {state: cloud.StateRunning, ready: true, wantReason: "Running", wantAfter: observe},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := recordedKluster()
			if test.ready {
				kluster.Status.ReadyGeneration = kluster.Generation
			}
			observed := observedCluster(test.state)
			observed.cluster.Pools[0].Running = test.running
			observed.cloud = &recordingAccount{changing: test.changing, upgrading: test.upgrading}
			found, err := newActing(t, kluster).act(t.Context(), kluster, observed)
			if blocking, isBlocked := errors.AsType[*blockedError](err); isBlocked {
				found = result{reason: blocking.reason, message: blocking.message, requeueAfter: blocking.requeueAfter}
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(err != nil).To(Equal(test.wantError), "an error means that something must change first, found: %v", err)
			g.Expect(found.reason).To(Equal(test.wantReason), "see inProgress and update in reconcile.go")
			g.Expect(found.requeueAfter).To(Equal(test.wantAfter), "no event says when to look again")
			g.Expect(found.message).NotTo(BeEmpty())
		})
	}
}

func TestUpdateOrder(t *testing.T) {
	tests := map[string]struct {
		state   cloud.State
		account recordingAccount
		want    []string
		// wantReason is the reason of the blockedError or of the result, or "" if it doesn't matter.
		wantReason string
	}{
		"the pools come first, and then the version":         {state: cloud.StateRunning, want: []string{"update pools", "upgrade to 1.36"}},
		"a change of the pools is enough for one reconcile":  {state: cloud.StateRunning, account: recordingAccount{changing: true}, want: []string{"update pools"}},
		"the version waits while the pools can't be changed": {state: cloud.StateRunning, account: recordingAccount{err: &cloud.Error{Problem: cloud.Refused, Message: "too many"}}, want: []string{"update pools"}, wantReason: klusterv1alpha1.ReasonRefused},
		"a degraded cluster is changed before it is reported": {
			state: cloud.StateDegraded, want: []string{"update pools", "upgrade to 1.36"}, wantReason: klusterv1alpha1.ReasonDegraded,
		},
		"a degraded cluster is reported after a change, too": {
			state: cloud.StateDegraded, account: recordingAccount{changing: true}, want: []string{"update pools"}, wantReason: klusterv1alpha1.ReasonDegraded,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := recordedKluster()
			observed := observedCluster(test.state)
			observed.cluster.Message = "a disk is slow"
			observed.cloud = &test.account
			found, err := newActing(t, kluster).act(t.Context(), kluster, observed)
			g.Expect(test.account.changes).To(Equal(test.want), "see update in reconcile.go")
			if test.wantReason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			if blocking, isBlocked := errors.AsType[*blockedError](err); isBlocked {
				found = result{reason: blocking.reason, message: blocking.message}
			}
			g.Expect(found.reason).To(Equal(test.wantReason), "see update in reconcile.go")
			if test.state == cloud.StateDegraded {
				g.Expect(found.message).To(ContainSubstring("a disk is slow"), "the message must contain the cloud's own words, see update in reconcile.go")
			}
		})
	}
}

func TestWasReady(t *testing.T) {
	tests := map[string]struct {
		generation int64
		want       bool
	}{
		"it was, with the current spec": {generation: 3, want: true},
		"it was, with an earlier spec":  {generation: 2},
		"it never was":                  {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kluster := storedKluster()
			kluster.Status.ReadyGeneration = test.generation
			// wasReady must not depend on the Ready condition: during an outage, for example, it is Unknown.
			kluster.Status.Conditions = []metav1.Condition{{Type: klusterv1alpha1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: 3}}
			NewWithT(t).Expect(wasReady(kluster)).To(Equal(test.want), "see wasReady in compare.go")
		})
	}
}

func TestUpdateStatusWritesOnlyChanges(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	recorder, clientset := events.NewFakeRecorder(2), klusterfake.NewClientset(kluster)
	c := newHandlers(t)
	c.clients, c.recorder = &clients{kluster: clientset}, recorder
	clientset.PrependReactor("update", "klusters", withNewVersion(slices.Clone(clientset.ReactionChain)))
	status := statusOf(t, kluster, observedCluster(cloud.StateRunning), running, nil)
	g.Expect(c.updateStatus(t.Context(), kluster, status)).To(Succeed())
	g.Expect(clientset.Actions()).To(ConsistOf(And(HaveField("Verb", "update"), HaveField("Subresource", "status"))), "see updateStatus in status.go")
	g.Expect(fieldManagers(clientset.Actions())).To(ConsistOf(programName),
		"the update must name programName as its field manager, see updateStatus in status.go")
	g.Expect(recorder.Events).To(HaveLen(1), "see announce in status.go")
	g.Expect(kluster.Status).To(BeZero(), "the cache's own object must not be changed")
	g.Expect(c.isStale(kluster)).To(BeTrue(), "until the cache shows this write, another reconcile is useless: call c.wrote, see updateStatus in status.go")

	kluster.Status = *status
	g.Expect(c.updateStatus(t.Context(), kluster, status.DeepCopy())).To(Succeed())
	g.Expect(clientset.Actions()).To(HaveLen(1), "an unchanged status must not be written")
}

func TestDelete(t *testing.T) {
	tests := map[string]struct {
		// faults are injected when the Kluster is deleted.
		faults []doks.Fault
		// meanwhile changes the cloud before the operator learns of the deletion.
		meanwhile func(*GomegaWithT, *trial, string)
		// recorded is the ID in the annotation if it differs from the cluster's.
		recorded string
		// window is the consistency window.
		window       time.Duration
		wantReason   string
		wantRequests int
	}{
		"the cloud removes the cluster immediately": {wantReason: "Deleted", wantRequests: 1},
		"the cloud takes its time":                  {faults: []doks.Fault{deleting(doks.FaultStuckDelete, false)}, wantReason: "Deleting", wantRequests: 1},
		"the ID on record is wrong":                 {recorded: "id-of-nothing", faults: []doks.Fault{deleting(doks.FaultStuckDelete, false)}, wantReason: "Deleting", wantRequests: 1},
		"the cloud fails, and is asked again":       {faults: []doks.Fault{deleting(doks.FaultUnavailable, false)}, wantReason: "Deleted", wantRequests: 1},
		"the answer is lost":                        {faults: []doks.Fault{deleting(doks.FaultDrop, true)}, wantReason: "Deleted", wantRequests: 1},
		"the cluster is gone already":               {meanwhile: func(g *GomegaWithT, r *trial, id string) { g.Expect(r.cloud.Remove(id)).To(Succeed()) }, wantReason: "Deleted"},
		"the cluster may not be shown yet":          {meanwhile: func(g *GomegaWithT, r *trial, id string) { g.Expect(r.cloud.Remove(id)).To(Succeed()) }, window: time.Hour, wantReason: "Deleting"},
		"the cluster is another Kluster's":          {meanwhile: retagged("kluster-uid:uid-of-another"), wantReason: "Deleted"},
		"two Klusters claim the cluster":            {meanwhile: retagged("kluster-uid:uid-of-another", "kluster-uid:uid-of-front"), wantReason: "NotOwned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTrial(t, storedKluster())
			g.Expect(r.steps(t)).To(Succeed())
			g.Expect(r.cloud.Clusters()).To(HaveLen(1))
			r.options.consistencyWindow = test.window
			now := metav1.Now()
			r.change(t, func(kluster *klusterv1alpha1.Kluster) {
				kluster.DeletionTimestamp = &now
				if test.recorded != "" {
					kluster.Annotations[klusterv1alpha1.ExternalNameAnnotation] = test.recorded
				}
				meta.SetStatusCondition(&kluster.Status.Conditions, metav1.Condition{Type: klusterv1alpha1.ConditionProvisioned, Status: metav1.ConditionFalse})
			})
			if test.meanwhile != nil {
				test.meanwhile(g, r, r.cloud.Clusters()[0].ID)
			}
			for _, fault := range test.faults {
				g.Expect(r.cloud.AddFault(fault)).To(Succeed())
			}
			_ = r.steps(t) // with a fault, a step fails
			g.Expect(r.reason(t)).To(Equal(test.wantReason), "see delete in deletion.go")
			g.Expect(r.cloud.Effective("delete cluster")).To(HaveLen(test.wantRequests))
			if left := r.cloud.Clusters(); test.wantReason == klusterv1alpha1.ReasonDeleting && len(left) > 0 {
				g.Expect(r.ready(t).Message).To(ContainSubstring(left[0].ID), "the message of Deleting must name the ID of the cluster that was found, see delete in deletion.go")
			}
			if test.wantReason != klusterv1alpha1.ReasonDeleted {
				g.Expect(r.live(t).Finalizers).To(ConsistOf(klusterv1alpha1.Finalizer), "the Kluster must stay until its cluster is gone")
				g.Expect(r.secret(t).Finalizers).To(HaveLen(1), "the Secret must keep its finalizer, because the token is still needed")
			}
		})
	}
}

// retagged returns a function that replaces the cluster's tags.
func retagged(tags ...string) func(*GomegaWithT, *trial, string) {
	return func(g *GomegaWithT, r *trial, id string) { g.Expect(r.cloud.SetTags(id, tags)).To(Succeed()) }
}

func TestIsFinished(t *testing.T) {
	now := metav1.Now()
	provisioned := func(reason string) func(*klusterv1alpha1.Kluster) {
		return func(kluster *klusterv1alpha1.Kluster) {
			kluster.Status.KlusterID = "id-of-front"
			kluster.Status.Conditions = []metav1.Condition{{Type: klusterv1alpha1.ConditionProvisioned, Reason: reason}}
		}
	}
	tests := map[string]struct {
		kluster   func(*klusterv1alpha1.Kluster)
		protected bool
		stays     bool
		want      bool
	}{
		"it is not deleted":                 {stays: true, kluster: provisioned(klusterv1alpha1.ReasonDeleted)},
		"no cluster was ever requested":     {kluster: func(*klusterv1alpha1.Kluster) {}, want: true},
		"its token is protected":            {kluster: func(*klusterv1alpha1.Kluster) {}, protected: true},
		"a cluster may have been requested": {kluster: func(kluster *klusterv1alpha1.Kluster) { kluster.Annotations = pendingKluster().Annotations }},
		"there is a cluster":                {kluster: provisioned(klusterv1alpha1.ReasonRunning), protected: true},
		"the cluster is gone":               {kluster: provisioned(klusterv1alpha1.ReasonDeleted), protected: true, want: true},
		"the cluster stays because of Orphan": {
			kluster: func(kluster *klusterv1alpha1.Kluster) {
				provisioned(klusterv1alpha1.ReasonRunning)(kluster)
				kluster.Spec.DeletionPolicy = klusterv1alpha1.DeletionOrphan
			},
			protected: true, want: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			test.kluster(kluster)
			if !test.stays {
				kluster.DeletionTimestamp = &now
			}
			r := newTrial(t, kluster)
			if test.protected {
				protect(t, r, kluster)
			}
			finished, err := r.isFinished(t.Context(), kluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(finished).To(Equal(test.want), "see isFinished in deletion.go")
		})
	}
}

// protect adds the finalizers of the Kluster and of another one to the token's Secret.
func protect(t *testing.T, r *trial, kluster *klusterv1alpha1.Kluster) {
	t.Helper()
	secret := r.secret(t)
	secret.Finalizers = []string{"inspirit941.dev/kluster-of-another", tokenFinalizer(kluster)}
	_, err := r.kube.CoreV1().Secrets(r.namespace).Update(t.Context(), secret, metav1.UpdateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestReleaseEndsWithTheKlustersFinalizer(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	kluster.Finalizers = append(kluster.Finalizers, "example.com/theirs")
	r := newTrial(t, kluster)
	protect(t, r, kluster)
	refuse := errors.New("the API server is away")
	r.kube.PrependReactor("patch", "secrets", failing(&refuse))
	g.Expect(r.release(t.Context(), kluster)).To(MatchError(refuse), "see unprotectSecrets in token.go")
	g.Expect(r.live(t).Finalizers).To(ContainElement(klusterv1alpha1.Finalizer), "the Kluster's finalizer must go last, so that the next try still finds the Kluster, see release in deletion.go")
	refuse = nil
	g.Expect(r.release(t.Context(), kluster)).To(Succeed())
	g.Expect(r.secret(t).Finalizers).To(ConsistOf("inspirit941.dev/kluster-of-another"), "see unprotectSecrets in token.go")
	g.Expect(r.live(t).Finalizers).To(ConsistOf("example.com/theirs"), "see removeFinalizer in metadata.go")
	g.Expect(kluster.Finalizers).To(HaveLen(2), "the cache's own object must not be changed")
}

func TestReleaseThatIsRefusedIsReported(t *testing.T) {
	g := NewWithT(t)
	kluster := recordedKluster()
	kluster.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	kluster.Status.KlusterID = "id-of-front"
	deleted := metav1.Condition{Type: klusterv1alpha1.ConditionProvisioned, Status: metav1.ConditionFalse, Reason: klusterv1alpha1.ReasonDeleted}
	kluster.Status.Conditions = []metav1.Condition{deleted}
	r := newTrial(t, kluster)
	protect(t, r, kluster)
	var forbidden error = apierrors.NewForbidden(corev1.Resource("secrets"), "digitalocean", errors.New("a policy"))
	r.kube.PrependReactor("patch", "secrets", failing(&forbidden))
	for range 2 {
		g.Expect(r.step(t)).To(MatchError(forbidden), "the release must be retried, see patchTokenFinalizer in token.go")
	}
	g.Expect(r.ready(t)).To(And(HaveField("Reason", klusterv1alpha1.ReasonSecretRefused), HaveField("Message", ContainSubstring(`"digitalocean"`))),
		"users must learn why the Kluster stays, see reconcile in reconcile.go")
	conditions := r.live(t).Status.Conditions
	g.Expect(conditions).To(ContainElement(And(HaveField("Type", klusterv1alpha1.ConditionProvisioned), HaveField("Reason", klusterv1alpha1.ReasonDeleted))),
		"the cluster is still gone, see provisionedCondition in status.go")
	g.Expect(conditions).NotTo(ContainElement(HaveField("Type", klusterv1alpha1.ConditionCredentialsReady)), "the token was not used, see credentialsCondition in status.go")
	forbidden = nil
	g.Expect(r.step(t)).To(Succeed())
	g.Expect(r.live(t).Finalizers).To(BeEmpty(), "see release in deletion.go")
}

func TestReleaseReportsAClusterThatStays(t *testing.T) {
	g := NewWithT(t)
	warning := func(parts ...string) types.GomegaMatcher {
		matchers := []types.GomegaMatcher{HavePrefix("Warning " + klusterv1alpha1.ReasonOrphaned), ContainSubstring("kluster-uid:uid-of-front"), ContainSubstring("acme")}
		for _, part := range parts {
			matchers = append(matchers, ContainSubstring(part))
		}
		return Receive(And(matchers...))
	}
	tests := map[string]struct {
		kluster *klusterv1alpha1.Kluster
		policy  klusterv1alpha1.DeletionPolicy
		want    types.GomegaMatcher
	}{
		"the cluster is deleted":        {kluster: recordedKluster(), policy: klusterv1alpha1.DeletionDelete, want: BeEmpty()},
		"the cluster stays":             {kluster: recordedKluster(), policy: klusterv1alpha1.DeletionOrphan, want: warning("id-of-front")},
		"there may be a cluster":        {kluster: pendingKluster(), policy: klusterv1alpha1.DeletionOrphan, want: warning()},
		"no cluster was ever requested": {kluster: storedKluster(), policy: klusterv1alpha1.DeletionOrphan, want: BeEmpty()},
	}
	for name, test := range tests {
		test.kluster.Spec.DeletionPolicy = test.policy
		r := newTrial(t, test.kluster)
		recorder := events.NewFakeRecorder(1)
		r.recorder = recorder
		g.Expect(r.release(t.Context(), test.kluster)).To(Succeed())
		g.Expect(recorder.Events).To(test.want, "%s, see release in deletion.go", name)
	}
}

// failing makes requests fail with the error, unless it is nil.
func failing(err *error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return *err != nil, nil, *err }
}

func TestUnprotectSecrets(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	r := newTrial(t, kluster)
	protect(t, r, kluster)
	g.Expect(r.unprotectSecrets(t.Context(), kluster, "digitalocean")).To(Succeed())
	g.Expect(r.secret(t).Finalizers).To(ContainElement(tokenFinalizer(kluster)), "the Secret that is passed as except must keep the finalizer, see unprotectSecrets in token.go")
	g.Expect(r.unprotectSecrets(t.Context(), kluster, "")).To(Succeed())
	g.Expect(r.secret(t).Finalizers).To(ConsistOf("inspirit941.dev/kluster-of-another"), "other Klusters' finalizers must stay, see unprotectSecrets in token.go")
}

func TestAnotherSecretIsReleased(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	kluster.Status.TokenSecret = "digitalocean"
	kluster.Spec.TokenSecret.Name = "another"
	r := newTrial(t, kluster)
	first := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "digitalocean", Finalizers: []string{tokenFinalizer(kluster)}}}
	_, err := r.kube.CoreV1().Secrets(r.namespace).Create(t.Context(), first, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	observed, err := r.connect(t.Context(), kluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(observed.tokenSecret).To(HaveValue(And(HaveField("Name", "another"), HaveField("Finalizers", ConsistOf(tokenFinalizer(kluster))))))
	g.Expect(r.secret(t).Finalizers).To(BeEmpty(), "see protectSecret in token.go")
}
