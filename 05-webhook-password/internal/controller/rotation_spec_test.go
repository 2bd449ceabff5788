package controller_test

import (
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

var _ = Describe("a rotation", func() {
	It("happens when it is due, and no sooner, or at the next start if no operator is running then", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		noon := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
		now := clocktesting.NewFakePassiveClock(noon)
		stop := startManagerAt(now, cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "rotated")
		password.Spec.Rotation = rotationAfter(time.Hour)
		create(ctx, password)
		first := expectReady(ctx, password)
		Expect(password.Status.LastRotated.Time).To(BeTemporally("==", noon))
		Expect(password.Status.NextRotation.Time).To(BeTemporally("==", noon.Add(time.Hour)))

		now.SetTime(noon.Add(time.Hour - time.Second))
		nudge(ctx, password)
		consistently(ctx, func(g Gomega) {
			found := getSecret(ctx, g, namespace, "rotated")
			g.Expect(found.ResourceVersion).To(Equal(first.ResourceVersion), "the rotation is not due for another second, see reasonToGenerate in signature.go")
		})
		now.SetTime(noon.Add(time.Hour))
		nudge(ctx, password)
		second := expectReadyAgain(ctx, password, first)
		Expect(second.UID).To(Equal(first.UID), "the Secret must stay the same object, so that pods that mount it see the change")
		Expect(password.Status.LastRotated.Time).To(BeTemporally("==", noon.Add(time.Hour)))
		Expect(password.Status.NextRotation.Time).To(BeTemporally("==", noon.Add(2*time.Hour)))
		expectEvents(ctx, password, "Normal Generated", "Normal Rotated")

		stop()
		now.SetTime(noon.Add(5 * time.Hour))
		startManagerAt(now, cluster.Config, testOptions(namespace))
		expectReadyAgain(ctx, password, second)
		Expect(password.Status.LastRotated.Time).To(BeTemporally("==", noon.Add(5*time.Hour)), "one rotation must make up for all that were missed")
		expectEvents(ctx, password, "Normal Generated", "Normal Rotated", "Normal Rotated")
	}, SpecTimeout(specTimeout))

	It("follows a later change of the spec", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		noon := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
		now := clocktesting.NewFakePassiveClock(noon)
		startManagerAt(now, cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "changing")
		create(ctx, password)
		first := expectReady(ctx, password)
		now.SetTime(noon.Add(48 * time.Hour))
		patch(ctx, password, `{"spec":{"rotation":{"after":"72h"}}}`)
		Expect(expectReady(ctx, password).ResourceVersion).To(Equal(first.ResourceVersion))
		Expect(password.Status.NextRotation.Time).To(BeTemporally("==", noon.Add(72*time.Hour)), "the password's age counts, not the time of the change")

		patch(ctx, password, `{"spec":{"rotation":{"after":"24h"}}}`)
		second := expectReadyAgain(ctx, password, first)
		patch(ctx, password, `{"spec":{"rotation":null}}`)
		Expect(expectReady(ctx, password).ResourceVersion).To(Equal(second.ResourceVersion))
		Expect(password.Status.NextRotation).To(BeNil())
		expectEvents(ctx, password, "Normal Generated", "Normal Rotated")
	}, SpecTimeout(specTimeout))

	It("needs no event", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		now := &shiftedClock{}
		startManagerAt(now, cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "soon")
		password.Spec.Rotation = rotationAfter(time.Minute) // the API allows no less
		create(ctx, password)
		first := expectReady(ctx, password)
		due := password.Status.NextRotation.Time
		now.shift.Store(int64(time.Until(due) - 1500*time.Millisecond))
		nudge(ctx, password) // from here on, the rotation is due in a second and a half
		expectReadyAgain(ctx, password, first)
		Expect(password.Status.LastRotated.Time).To(BeTemporally(">=", due), "see untilRotation in password_controller.go")
		expectEvents(ctx, password, "Normal Generated", "Normal Rotated")
	}, SpecTimeout(specTimeout))
})

// shiftedClock runs at the speed of the real clock, but may be ahead of it.
type shiftedClock struct{ shift atomic.Int64 }

func (c *shiftedClock) Now() time.Time                     { return time.Now().Add(time.Duration(c.shift.Load())) }
func (c *shiftedClock) Since(past time.Time) time.Duration { return c.Now().Sub(past) }

func rotationAfter(age time.Duration) *secretv1.Rotation {
	return &secretv1.Rotation{After: age.String()}
}
