package generator

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/sethvargo/go-password/password"
	"k8s.io/apimachinery/pkg/util/validation/field"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// policyOf is a policy with the defaults of the API server.
func policyOf(change func(*secretv1.PasswordPolicy)) secretv1.PasswordPolicy {
	policy := secretv1.PasswordPolicy{
		Length: 20, Require: []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: 5}},
		Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
	}
	if change != nil {
		change(&policy)
	}
	return policy
}

func require(digits, symbols int32) []secretv1.Requirement {
	return []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: digits}, {Class: secretv1.ClassSymbol, Count: symbols}}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*secretv1.PasswordPolicy)
		want   []string
	}{
		"the defaults":                   {},
		"as many digits as characters":   {change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, require(8, 0) }},
		"nothing but digits and symbols": {change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 128, require(64, 64) }},
		"more than there is room for": {
			change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, require(5, 4) },
			want:   []string{"spec.policy.require: Invalid value: 9: the counts together must be at most the length, 8"},
		},
		"every character there is, once": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 92, require(10, 30), secretv1.RepeatForbidden
			},
		},
		"more digits than there are": {
			change: func(p *secretv1.PasswordPolicy) { p.Require, p.Repeat = require(11, 0), secretv1.RepeatForbidden },
			want:   []string{"spec.policy.require[0].count: Invalid value: 11: must be at most 10, for there are no more of class Digit, and none may be there twice"},
		},
		"more symbols than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 40, require(0, 31), secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.require[1].count: Invalid value: 31: must be at most 30, for there are no more of class Symbol, and none may be there twice"},
		},
		"more letters than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 53, nil, secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.length: Invalid value: 53: leaves 53 characters for letters, must be at most 52, for none may be there twice"},
		},
		"more small letters than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Case, p.Repeat = 27, nil, secretv1.CaseLower, secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.length: Invalid value: 27: leaves 27 characters for letters, must be at most 26, for none may be there twice"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := policyOf(test.change)
			var found []string
			for _, problem := range Check(policy, field.NewPath("spec", "policy")) {
				found = append(found, problem.Error())
			}
			g.Expect(found).To(Equal(test.want))
			generated, err := Generate(policy)
			if test.want != nil {
				g.Expect(err).To(HaveOccurred(), "a password was made although Check says that there is none")
				return
			}
			g.Expect(err).NotTo(HaveOccurred(), "Check says that this is possible")
			expectPolicy(g, generated, policy)
		})
	}
}

// expectPolicy never prints the password.
func expectPolicy(g Gomega, generated string, policy secretv1.PasswordPolicy) {
	counted := func(characters string) int {
		return strings.Count(strings.Map(func(r rune) rune {
			if strings.ContainsRune(characters, r) {
				return 'x'
			}
			return -1
		}, generated), "x")
	}
	length, different := len(generated), map[rune]bool{} // numbers, for Gomega prints what it compares
	g.Expect(length).To(BeEquivalentTo(policy.Length), "the length is not what the policy says")
	g.Expect(counted(password.Digits)).To(Equal(count(policy, secretv1.ClassDigit)))
	g.Expect(counted(password.Symbols)).To(Equal(count(policy, secretv1.ClassSymbol)))
	g.Expect(counted(lettersOf(policy))).To(Equal(int(policy.Length)-count(policy, secretv1.ClassDigit)-count(policy, secretv1.ClassSymbol)), "the rest are letters that are allowed")
	if policy.Repeat == secretv1.RepeatForbidden {
		for _, character := range generated {
			different[character] = true
		}
		found := len(different)
		g.Expect(found).To(Equal(length), "a character is there twice")
	}
}
