package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

func TestNewStatus(t *testing.T) {
	tests := map[string]struct {
		edit    func(*secretv1.Password, *corev1.Secret)
		none    bool
		blocked *blockedError
		// want is the state, the condition's status and its reason.
		want string
		// silent is true if the status says nothing about the password.
		silent bool
	}{
		"all is well": {want: "Ready True Generated"},
		"there is no Secret, because the name is taken": {none: true, blocked: &blockedError{reason: "NameTaken", message: "blocked"}, want: "Failed False NameTaken", silent: true},
		"a former Secret is being removed":              {none: true, blocked: &blockedError{reason: "Replacing", message: "blocked"}, want: "Pending False Replacing", silent: true},
		"the first Secret is refused":                   {none: true, blocked: &blockedError{reason: "Refused", message: "blocked"}, want: "Failed False Refused", silent: true},
		"a change of the Secret is refused":             {blocked: &blockedError{reason: "Refused", message: "blocked"}, want: "Failed False Refused"},
		"the new policy is impossible":                  {blocked: &blockedError{reason: "Impossible", message: "blocked"}, want: "Failed False Impossible"},
		"the Secret was edited, and its repair is refused": {
			edit:    func(_ *secretv1.Password, secret *corev1.Secret) { secret.Data["password"] = []byte(otherPass) },
			blocked: &blockedError{reason: "Refused", message: "blocked"}, want: "Failed False Refused", silent: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			password, secret := storedPassword(), sealedSecret(t)
			fingerprint := secret.Annotations[fingerprintAnnotation]
			if test.edit != nil {
				test.edit(password, secret)
			}
			if test.none {
				secret = nil
			}
			status := newStatus(password, secret, test.blocked)
			g.Expect(status).NotTo(BeNil(), "see newStatus in status.go")
			g.Expect(status.Conditions).To(HaveLen(1))
			ready := status.Conditions[0]
			g.Expect(status.State+" "+string(ready.Status)+" "+ready.Reason).To(Equal(test.want), "see newStatus in status.go")
			g.Expect(ready.Type).To(Equal("Ready"))
			g.Expect(ready.Message).NotTo(BeEmpty())
			g.Expect([]int64{status.ObservedGeneration, ready.ObservedGeneration}).To(Equal([]int64{3, 3}))
			g.Expect(status.SecretName).To(Equal(map[bool]string{false: "database"}[test.none]))
			if test.blocked != nil {
				g.Expect(ready.Message).To(Equal("blocked"))
			}
			if test.silent {
				g.Expect(status.Fingerprint).To(BeEmpty(), "the fingerprint might not be that of the password")
				g.Expect(status.LastRotated).To(BeNil())
				return
			}
			g.Expect(status.Fingerprint).To(Equal(fingerprint))
			g.Expect(status.LastRotated.Time).To(BeTemporally("==", noon))
			g.Expect(status.NextRotation).To(BeNil(), "the status must announce no rotation, because the spec has none")
		})
	}
}

func TestNewStatusNextRotation(t *testing.T) {
	g := NewWithT(t)
	password := storedPassword()
	password.Spec.Rotation = &secretv1.Rotation{After: "90m"}
	next := metav1.NewTime(noon.Add(90 * time.Minute))
	g.Expect(newStatus(password, sealedSecret(t), nil)).To(HaveField("NextRotation", Equal(&next)))
	g.Expect(newStatus(password, nil, &blockedError{reason: "NameTaken"})).To(HaveField("NextRotation", BeNil()))
}

func TestNewStatusKeepsTimes(t *testing.T) {
	g := NewWithT(t)
	password := storedPassword()
	audited := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "Checked", LastTransitionTime: metav1.NewTime(noon)}
	ready := readyCondition(nil)
	ready.LastTransitionTime = metav1.NewTime(noon)
	password.Status.Conditions = []metav1.Condition{ready, audited}
	before := password.Status.DeepCopy()
	since := func(status *secretv1.PasswordStatus) time.Time {
		g.Expect(status).NotTo(BeNil(), "see newStatus in status.go")
		ready := meta.FindStatusCondition(status.Conditions, secretv1.ConditionReady)
		g.Expect(ready).NotTo(BeNil(), "the status needs the condition Ready")
		return ready.LastTransitionTime.Time
	}

	status := newStatus(password, sealedSecret(t), nil)
	g.Expect(since(status)).To(BeTemporally("==", noon), "an unchanged condition must keep its time")
	g.Expect(status.Conditions).To(ContainElement(audited), "conditions of other controllers must stay")
	status = newStatus(password, nil, &blockedError{reason: "NameTaken", message: "blocked"})
	g.Expect(since(status)).To(BeTemporally(">", noon), "the time should be that of the change from True to False")
	g.Expect(&password.Status).To(Equal(before), "the object in the cache must not be changed")
}

func TestAnnounceFailure(t *testing.T) {
	ready, taken := readyCondition(nil), readyCondition(&blockedError{reason: "NameTaken", message: "100% taken"})
	type conditions = []metav1.Condition
	tests := map[string]struct {
		before  conditions
		blocked *blockedError
		want    []string
	}{
		"a new Password is ready":               {},
		"a new Password fails":                  {blocked: &blockedError{reason: "NameTaken", message: "100% taken"}, want: []string{"Warning NameTaken 100% taken"}},
		"a ready Password fails":                {before: conditions{ready}, blocked: &blockedError{reason: "Refused", message: "no"}, want: []string{"Warning Refused no"}},
		"it fails again with another message":   {before: conditions{taken}, blocked: &blockedError{reason: "NameTaken", message: "another"}},
		"it fails for another reason":           {before: conditions{taken}, blocked: &blockedError{reason: "Impossible", message: "no"}, want: []string{"Warning Impossible no"}},
		"it is ready again":                     {before: conditions{taken}},
		"the former Secret is terminating":      {before: conditions{ready}, blocked: &blockedError{reason: "Replacing", message: "wait"}},
		"only another condition has the reason": {before: conditions{{Type: "Audited", Reason: "Refused"}}, blocked: &blockedError{reason: "Refused", message: "no"}, want: []string{"Warning Refused no"}},
		"it waited, and now it fails":           {before: conditions{readyCondition(&blockedError{reason: "Replacing"})}, blocked: &blockedError{reason: "NameTaken", message: "no"}, want: []string{"Warning NameTaken no"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(9)
			password := storedPassword()
			password.Status.State = stateOf(test.blocked)
			(&PasswordReconciler{Recorder: recorder}).announceFailure(password, test.before, test.blocked)
			close(recorder.Events)
			var found []string
			for event := range recorder.Events {
				found = append(found, event)
			}
			g.Expect(found).To(Equal(test.want), "see announceFailure in status.go")
		})
	}
}

func TestNoWarningWithoutAStatus(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(secretv1.SchemeGroupVersion.WithResource("passwords").GroupResource(), "database", nil)
		},
	}, storedPassword())
	err := reconciler.updateStatus(t.Context(), storedPassword(), nil, &blockedError{reason: "NameTaken", message: "blocked"})
	g.Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"), "see updateStatus in status.go")
	g.Expect(eventOf(reconciler)).To(BeEmpty(), "each retry would warn again: announce the failure after the write, see updateStatus in status.go")
}
