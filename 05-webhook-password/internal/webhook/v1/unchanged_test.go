package v1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

// With the match conditions in config/webhook/match_conditions_validating.yaml, the API server never asks the webhook
// about an update that leaves the spec as it is. The webhook must not depend on that.
func TestUnchangedSpecIsNotValidated(t *testing.T) {
	g := NewWithT(t)
	stored := password("stored", policy(53, 0, 0), once, every(time.Nanosecond))
	labelled := stored.DeepCopy()
	label(labelled)
	warnings, err := (&webhookv1.PasswordCustomValidator{}).ValidateUpdate(t.Context(), stored, labelled)
	g.Expect(err).NotTo(HaveOccurred(), "a user should be able to label an object that was stored under other rules, see ValidateUpdate in password_webhook.go")
	g.Expect(warnings).To(BeEmpty())

	rotating := labelled.DeepCopy()
	rotation(rotating)
	_, err = (&webhookv1.PasswordCustomValidator{}).ValidateUpdate(t.Context(), stored, rotating)
	g.Expect(err).NotTo(HaveOccurred(), "only the rotation has changed, and the new one is valid")
}
