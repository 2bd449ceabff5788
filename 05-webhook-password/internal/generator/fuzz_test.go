package generator

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// FuzzGenerate tries arbitrary policies whose fields are within the bounds of the schema. Check must find a problem if
// and only if no password can meet the policy. If one can, Generate must make such a password.
func FuzzGenerate(f *testing.F) {
	for _, once := range []bool{false, true} {
		f.Add(uint8(12), uint8(5), uint8(0), false, once, false)
		f.Add(uint8(120), uint8(64), uint8(64), false, once, true)
		f.Add(uint8(84), uint8(10), uint8(30), false, once, false)
		f.Add(uint8(58), uint8(10), uint8(30), true, once, false)
		f.Add(uint8(0), uint8(9), uint8(0), true, once, false)
	}
	f.Fuzz(func(t *testing.T, length, digits, symbols uint8, lower, once, reverse bool) {
		g := NewWithT(t)
		policy := anyPolicy(length, digits, symbols, lower, once, reverse)
		possible := len(Check(policy, field.NewPath("spec", "policy"))) == 0
		g.Expect(possible).To(Equal(isPossible(policy)), "Check and the alphabets disagree about %s", Describe(policy))
		generated, err := Generate(policy)
		if !possible {
			g.Expect(err).To(HaveOccurred(), "a password was made for %s, although Check says that none is possible", Describe(policy))
			g.Expect(generated).To(BeEmpty(), "Generate should not return a password with an error")
			return
		}
		g.Expect(err).NotTo(HaveOccurred(), "Check says that a password is possible for %s", Describe(policy))
		expectPolicy(g, generated, policy)
	})
}

func anyPolicy(length, digits, symbols uint8, lower, once, reverse bool) secretv1.PasswordPolicy {
	policy := policyOf(func(p *secretv1.PasswordPolicy) {
		p.Length, p.Require = 8+int32(length)%121, require(int32(digits)%129, int32(symbols)%129)
	})
	if lower {
		policy.Case = secretv1.CaseLower
	}
	if once {
		policy.Repeat = secretv1.RepeatForbidden
	}
	if reverse {
		policy.Require[0], policy.Require[1] = policy.Require[1], policy.Require[0]
	}
	return policy
}

// isPossible computes, independently of Check, whether a password can meet the policy.
func isPossible(policy secretv1.PasswordPolicy) bool {
	left := map[secretv1.CharacterClass]int32{secretv1.ClassDigit: 10, secretv1.ClassSymbol: 30}
	letters, lettersLeft := policy.Length, int32(52)
	if policy.Case == secretv1.CaseLower {
		lettersLeft = 26
	}
	enough := true
	for _, requirement := range policy.Require {
		letters -= *requirement.Count
		enough = enough && *requirement.Count <= left[requirement.Class]
	}
	if policy.Repeat == secretv1.RepeatForbidden && (!enough || letters > lettersLeft) {
		return false
	}
	return letters >= 0
}
