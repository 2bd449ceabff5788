//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

const (
	// protectedNamespace is deleted while it contains a protected Password.
	protectedNamespace = "password-e2e-protected"
	protect            = "secret.example.com/deletion-protection=enabled"

	// impossible asks for more different digits than there are.
	impossible = `{apiVersion: secret.example.com/v1, kind: Password, metadata: {name: impossible},
spec: {policy: {require: [{class: Digit, count: 11}], repeat: Forbidden}}}`
	// weak is allowed, but its password can be guessed.
	weak = `{apiVersion: secret.example.com/v1, kind: Password, metadata: {name: weak}, spec: {policy: {length: 8}}}`
	// sound is a valid Password that causes no warning.
	sound = `{apiVersion: secret.example.com/v1, kind: Password, metadata: {name: sound}}`
)

func describeWebhooks(operator incluster.Operator) {
	It("refuses what only its webhook can refuse, with the messages in the samples", func(ctx SpecContext) {
		samples, err := filepath.Glob("config/samples/refused-by-webhook/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).NotTo(BeEmpty(), "config/samples/refused-by-webhook must have samples")
		for _, sample := range samples {
			content, err := os.ReadFile(sample)
			Expect(err).NotTo(HaveOccurred())
			message, _, _ := strings.Cut(strings.TrimPrefix(string(content), "# refused: "), "\n")
			Expect(dryRun(ctx, string(content))).To(MatchError(ContainSubstring(message)), "the first line of %s should have the expected message", sample)
		}
	}, SpecTimeout(incluster.Timeout))

	It("warns of a password that can be guessed", func(ctx SpecContext) {
		Expect(dryRun(ctx, weak)).To(MatchError(And(ContainSubstring("Warning: spec.policy"), ContainSubstring("which can be guessed"))))
		Expect(dryRun(ctx, sound)).To(Succeed(), "an empty spec should cause no warning")
	}, SpecTimeout(incluster.Timeout))

	It("refuses a change of the Secret's name, and the deletion of a protected Password", func(ctx SpecContext) {
		_, err := incluster.TryKubectl(ctx, "patch", "password/full-password", "--namespace="+passwordNamespace, "--type=merge", `--patch={"spec":{"secretName":"other"}}`)
		Expect(err).To(MatchError(ContainSubstring(`spec.secretName: Invalid value: "other": can't be changed from "database-login"`)))

		incluster.Kubectl(ctx, "annotate", "password/full-password", "--namespace="+passwordNamespace, protect)
		_, err = incluster.TryKubectl(ctx, "delete", "password/full-password", "--namespace="+passwordNamespace)
		Expect(err).To(MatchError(ContainSubstring("remove the annotation first")))
	}, SpecTimeout(incluster.Timeout))

	It("doesn't block the deletion of a namespace in which a Password is protected", func(ctx SpecContext) {
		incluster.Kubectl(ctx, "create", "namespace", protectedNamespace)
		incluster.Kubectl(ctx, "apply", "--filename=config/samples/secret_v1_password.yaml", "--namespace="+protectedNamespace)
		incluster.Kubectl(ctx, "annotate", "password/password-sample", "--namespace="+protectedNamespace, protect)
		_, err := incluster.TryKubectl(ctx, "delete", "password/password-sample", "--namespace="+protectedNamespace)
		Expect(err).To(MatchError(ContainSubstring("remove the annotation first")), "the Password should be protected")

		incluster.Kubectl(ctx, "delete", "namespace", protectedNamespace, "--timeout=2m")
	}, SpecTimeout(incluster.Timeout))

	It("fills in the Secret's name", func(ctx SpecContext) {
		Expect(field(ctx, "password/password-sample", ".spec.secretName")).To(Equal("password-sample"))
	}, SpecTimeout(incluster.Timeout))

	It("converts between the versions", func(ctx SpecContext) {
		Expect(field(ctx, "password.v1.secret.example.com/former-password", ".spec.policy.require[?(@.class=='Symbol')].count")).To(Equal("2"), "v1 should have the value of v1alpha1")
		Expect(field(ctx, "password.v1alpha1.secret.example.com/full-password", ".spec.digits")).To(Equal("6"), "v1alpha1 should have the value of v1")
		incluster.Kubectl(ctx, "patch", "password.v1alpha1.secret.example.com/full-password", "--namespace="+passwordNamespace, "--type=merge", `--patch={"spec":{"digits":7}}`)
		Expect(field(ctx, "password.v1.secret.example.com/full-password", ".spec.policy.require[?(@.class=='Digit')].count")).To(Equal("7"), "v1 should have the value that was changed in v1alpha1")
		Expect(field(ctx, "password.v1.secret.example.com/full-password", ".spec.rotation.after")).To(Equal("720h"), "a field that v1alpha1 lacks should stay as it was")
	}, SpecTimeout(incluster.Timeout))

	It("is needed for new specs, but not for labels", func(ctx SpecContext) {
		incluster.Kubectl(ctx, "scale", "deployment/password-operator-controller-manager", "--namespace="+namespace, "--replicas=0")
		Eventually(dryRun).WithContext(ctx).WithArguments(sound).Should(MatchError(ContainSubstring("failed calling webhook")), "the API server should refuse a request that no webhook can check")
		incluster.Kubectl(ctx, "label", "password/full-password", "--namespace="+passwordNamespace, "team=storage")

		incluster.Kubectl(ctx, "scale", "deployment/password-operator-controller-manager", "--namespace="+namespace, "--replicas=2")
		operator.WaitForRollout(ctx)
		Eventually(dryRun).WithContext(ctx).WithArguments(sound).WithTimeout(30*time.Second).Should(Succeed(), "the webhook should answer again")
	}, SpecTimeout(incluster.Timeout))
}

// expectService fails if the validating or the conversion webhook does not answer.
func expectService(ctx context.Context) {
	GinkgoHelper()
	Expect(dryRun(ctx, impossible)).To(MatchError(ContainSubstring("must be at most 10")), "the validating webhook should answer")
	Expect(field(ctx, "password.v1alpha1.secret.example.com/former-password", ".spec.symbols")).To(Equal("2"), "the conversion webhook should answer")
}
