package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

func TestRequeueBlocked(t *testing.T) {
	quota := errors.New("exceeded quota")
	tests := map[string]struct {
		blocked blockedError
		// since is how long the Password has been blocked.
		since   time.Duration
		want    time.Duration
		wantErr error
	}{
		"a taken name is checked again after a second": {blocked: blockedError{reason: "NameTaken"}, want: time.Second},
		"a condition from the future counts as new":    {blocked: blockedError{reason: "NameTaken"}, since: -time.Hour, want: time.Second},
		"a second is the minimum":                      {blocked: blockedError{reason: "NameTaken"}, since: 999 * time.Millisecond, want: time.Second},
		"the delay grows with the time":                {blocked: blockedError{reason: "NameTaken"}, since: 90 * time.Second, want: 90 * time.Second},
		"five minutes is the maximum":                  {blocked: blockedError{reason: "NameTaken"}, since: 100 * time.Hour, want: 5 * time.Minute},
		"a terminating Secret is checked again":        {blocked: blockedError{reason: "Replacing"}, since: 2 * time.Second, want: 2 * time.Second},
		"a refusal is an error, which is retried":      {blocked: blockedError{reason: "Refused", retry: quota}, since: time.Hour, wantErr: quota},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			password := storedPassword()
			password.Status.Conditions = []metav1.Condition{{Type: "Ready", LastTransitionTime: metav1.NewTime(noon)}}
			reconciler := &PasswordReconciler{Clock: clocktesting.NewFakePassiveClock(noon.Add(test.since))}
			result, err := reconciler.requeueBlocked(password, &test.blocked)
			g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: test.want}), "see requeueBlocked in password_controller.go")
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.wantErr))
			g.Expect(errors.Is(err, reconcile.TerminalError(nil))).To(BeFalse())
		})
	}
}

func TestAnImpossiblePolicyIsATerminalError(t *testing.T) {
	g := NewWithT(t)
	result, err := (&PasswordReconciler{}).requeueBlocked(storedPassword(), &blockedError{reason: "Impossible", message: "too long"})
	g.Expect(result).To(Equal(ctrl.Result{}))
	g.Expect(errors.Is(err, reconcile.TerminalError(nil))).To(BeTrue(), "only a change of the spec can help, and that causes an event")
	g.Expect(err).To(MatchError("terminal error: Impossible: too long"))
}

func TestUntilRotation(t *testing.T) {
	tests := map[string]struct {
		next *metav1.Time
		want time.Duration
	}{
		"no rotation":    {},
		"in an hour":     {next: new(metav1.NewTime(noon.Add(time.Hour))), want: time.Hour},
		"now":            {next: new(metav1.NewTime(noon)), want: time.Nanosecond},
		"some hours ago": {next: new(metav1.NewTime(noon.Add(-9 * time.Hour))), want: time.Nanosecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			password := &secretv1.Password{Status: secretv1.PasswordStatus{NextRotation: test.next}}
			reconciler := &PasswordReconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
			NewWithT(t).Expect(reconciler.untilRotation(password)).To(Equal(test.want), "0 would mean never, see untilRotation in password_controller.go")
		})
	}
}

func TestIsNamespaceTerminating(t *testing.T) {
	g := NewWithT(t)
	err := apierrors.NewForbidden(corev1.Resource("secrets"), "database", nil)
	g.Expect(isNamespaceTerminating(err)).To(BeFalse())
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	g.Expect(isNamespaceTerminating(fmt.Errorf("create: %w", err))).To(BeTrue())
}
