package generator

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/sethvargo/go-password/password"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// policyOf returns a policy with the defaults of the schema, after the change, if there is one.
func policyOf(change func(*secretv1.PasswordPolicy)) secretv1.PasswordPolicy {
	policy := secretv1.PasswordPolicy{
		Length: 20, Require: []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: new(int32(5))}},
		Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
	}
	if change != nil {
		change(&policy)
	}
	return policy
}

func require(digits, symbols int32) []secretv1.Requirement {
	return []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: &digits}, {Class: secretv1.ClassSymbol, Count: &symbols}}
}

func TestGenerate(t *testing.T) {
	tests := map[string]func(*secretv1.PasswordPolicy){
		"the defaults":            nil,
		"digits and symbols":      func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 128, require(64, 64) },
		"lower-case letters only": func(p *secretv1.PasswordPolicy) { p.Length, p.Require, p.Case = 128, nil, secretv1.CaseLower },
		"no character twice": func(p *secretv1.PasswordPolicy) {
			p.Length, p.Require, p.Repeat = 92, require(10, 30), secretv1.RepeatForbidden
		},
		"no case and no repetition given": func(p *secretv1.PasswordPolicy) {
			p.Length, p.Require, p.Case, p.Repeat = 128, require(64, 0), "", ""
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			generated, err := Generate(policyOf(change))
			g.Expect(err).NotTo(HaveOccurred(), "a password that meets the policy is possible: see Generate in generator.go")
			expectPolicy(g, generated, policyOf(change))
		})
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*secretv1.PasswordPolicy)
		want   []string
	}{
		"the defaults":                   {},
		"as many digits as characters":   {change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, require(8, 0) }},
		"nothing but digits and symbols": {change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 128, require(64, 64) }},
		"more than the length": {
			change: func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, require(5, 4) },
			want:   []string{"spec.policy.require: Invalid value: 9: the counts together must be at most the length, 8"},
		},
		"every character, once": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 92, require(10, 30), secretv1.RepeatForbidden
			},
		},
		"more digits than there are, and no repetition given": {
			change: func(p *secretv1.PasswordPolicy) { p.Require, p.Repeat = require(11, 0), "" },
		},
		"every letter, once, and no case given": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Case, p.Repeat = 52, nil, "", secretv1.RepeatForbidden
			},
		},
		"more digits than there are": {
			change: func(p *secretv1.PasswordPolicy) { p.Require, p.Repeat = require(11, 0), secretv1.RepeatForbidden },
			want:   []string{"spec.policy.require[0].count: Invalid value: 11: must be at most 10, because there are no more of class Digit, and none may repeat"},
		},
		"more symbols than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 40, require(0, 31), secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.require[1].count: Invalid value: 31: must be at most 30, because there are no more of class Symbol, and none may repeat"},
		},
		"more letters than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Repeat = 53, nil, secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.length: Invalid value: 53: leaves 53 characters for letters, but there are only 52, and none may repeat"},
		},
		"more lower-case letters than there are": {
			change: func(p *secretv1.PasswordPolicy) {
				p.Length, p.Require, p.Case, p.Repeat = 27, nil, secretv1.CaseLower, secretv1.RepeatForbidden
			},
			want: []string{"spec.policy.length: Invalid value: 27: leaves 27 characters for letters, but there are only 26, and none may repeat"},
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
				g.Expect(err).To(HaveOccurred(), "a password was made although Check says that none is possible")
				return
			}
			g.Expect(err).NotTo(HaveOccurred(), "Check says that a password is possible: see Generate in generator.go")
			expectPolicy(g, generated, policy)
		})
	}
}

// TestDescribe pins the text, because the operator's Secrets contain it: if the text for a policy changed, the operator
// would replace every password of that policy. A new field of the policy may add to the text only if it is set.
func TestDescribe(t *testing.T) {
	NewWithT(t).Expect(Describe(policyOf(nil))).To(Equal("length=20 digits=5 symbols=0 case=Mixed repeat=Allowed"))
}

// TestEveryClass asks for each class alone. It reads the classes from the CRD's schema, so it covers new ones, too.
func TestEveryClass(t *testing.T) {
	g := NewWithT(t)
	classes := declaredClasses(g)
	g.Expect(classes).NotTo(BeEmpty())
	alphabets := map[string]secretv1.CharacterClass{lettersOf(policyOf(nil)): "letters"}
	for _, class := range classes {
		alphabet := charactersOf(class)
		g.Expect(alphabets).NotTo(HaveKey(alphabet), "%s has the characters of another class, see charactersOf in generator.go", class)
		alphabets[alphabet] = class
		policy := policyOf(func(p *secretv1.PasswordPolicy) {
			p.Length, p.Require = 8, []secretv1.Requirement{{Class: class, Count: new(int32(8))}}
		})
		g.Expect(Check(policy, nil)).To(BeEmpty(), "see PasswordPolicy.Validate in api/v1/password_validation.go")
		generated, err := Generate(policy)
		g.Expect(err).NotTo(HaveOccurred())
		others := len(strings.Trim(generated, alphabet))
		g.Expect(others).To(BeZero(), "8 of 8 characters should be of class %s, see Generate in generator.go", class)
		//workshop:step 5.3a
		g.Expect(Describe(policy)).NotTo(Equal(Describe(policyOf(func(p *secretv1.PasswordPolicy) { p.Length, p.Require = 8, nil }))), "a policy that asks for %s must have a different description, see Describe in generator.go", class)
	}
}

func declaredClasses(g Gomega) []secretv1.CharacterClass {
	content, err := os.ReadFile("../../config/crd/bases/secret.example.com_passwords.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.Unmarshal(content, definition)).To(Succeed())
	policy := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["policy"]
	var classes []secretv1.CharacterClass
	for _, choice := range policy.Properties["require"].Items.Schema.Properties["class"].Enum {
		var class secretv1.CharacterClass
		g.Expect(yaml.Unmarshal(choice.Raw, &class)).To(Succeed())
		classes = append(classes, class)
	}
	return classes
}

// expectPolicy checks that the password meets the policy. It never prints the password.
func expectPolicy(g Gomega, generated string, policy secretv1.PasswordPolicy) {
	counted := func(characters string) int {
		return strings.Count(strings.Map(func(r rune) rune {
			if strings.ContainsRune(characters, r) {
				return 'x'
			}
			return -1
		}, generated), "x")
	}
	letters := password.LowerLetters
	if policy.Case != secretv1.CaseLower {
		letters += password.UpperLetters
	}
	length, different := len(generated), map[rune]bool{} // numbers, because Gomega prints the values that it compares
	g.Expect(length).To(BeEquivalentTo(policy.Length), "the length must be that of the policy")
	g.Expect(counted(password.Digits)).To(Equal(count(policy, secretv1.ClassDigit)))
	g.Expect(counted(password.Symbols)).To(Equal(count(policy, secretv1.ClassSymbol)))
	g.Expect(counted(letters)).To(Equal(int(policy.Length)-count(policy, secretv1.ClassDigit)-count(policy, secretv1.ClassSymbol)), "all other characters should be allowed letters")
	if policy.Repeat == secretv1.RepeatForbidden {
		for _, character := range generated {
			different[character] = true
		}
		found := len(different)
		g.Expect(found).To(Equal(length), "no character should occur twice")
	}
}
