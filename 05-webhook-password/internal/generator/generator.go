// Package generator makes passwords, and checks whether a policy is possible and
// whether its passwords are strong. It does not depend on the API server. Both the
// webhook and the controller use it, so they can't disagree about a policy.
package generator

import (
	"errors"
	"fmt"

	"github.com/sethvargo/go-password/password"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// weakBits is the entropy, in bits, below which a password counts as weak. An attacker who
// tries 10^12 passwords a second needs about seven months to try all passwords of 64 bits.
const weakBits = 64

// Generate makes a password that meets the policy. Its random numbers come from
// crypto/rand. If Check finds problems, Generate returns them as an error.
//
//workshop:step 5.1b
func Generate(policy secretv1.PasswordPolicy) (string, error) {
	//workshop:step 5.1c
	if problems := Check(policy, field.NewPath("spec", "policy")); len(problems) > 0 {
		return "", problems.ToAggregate()
	}
	generated, err := password.Generate(int(policy.Length), count(policy, secretv1.ClassDigit), count(policy, secretv1.ClassSymbol),
		policy.Case == secretv1.CaseLower, policy.Repeat != secretv1.RepeatForbidden)
	if err != nil {
		return "", errors.New("the generator failed: " + err.Error())
	}
	return generated, nil
}

// Check returns the problems that Validate finds or, if there are none, those that make the policy impossible. path is
// the policy's own path.
//
//workshop:step 5.1c
func Check(policy secretv1.PasswordPolicy, path *field.Path) field.ErrorList {
	problems := policy.Validate(path)
	if len(problems) > 0 {
		return problems
	}
	letters := int(policy.Length) - count(policy, secretv1.ClassDigit) - count(policy, secretv1.ClassSymbol)
	if letters < 0 {
		required := int(policy.Length) - letters
		problems = append(problems, field.Invalid(path.Child("require"), required,
			fmt.Sprintf("the counts together must be at most the length, %d", policy.Length)))
	}
	if policy.Repeat != secretv1.RepeatForbidden {
		return problems
	}
	for i, requirement := range policy.Require {
		if available := len(charactersOf(requirement.Class)); int(*requirement.Count) > available { // Validate has checked that the count exists
			problems = append(problems, field.Invalid(path.Child("require").Index(i).Child("count"), *requirement.Count,
				fmt.Sprintf("must be at most %d, because there are no more of class %s, and none may repeat", available, requirement.Class)))
		}
	}
	if available := len(lettersOf(policy)); letters > available {
		problems = append(problems, field.Invalid(path.Child("length"), policy.Length,
			fmt.Sprintf("leaves %d characters for letters, but there are only %d, and none may repeat", letters, available)))
	}
	return problems
}

// Describe returns a description of the policy in one line. The order of the requirements makes no difference.
// Every Secret that the operator makes contains the description of its password's policy. If a new version of the
// operator described a policy differently, it would replace all passwords of that policy.
//
//workshop:step 5.3a
func Describe(policy secretv1.PasswordPolicy) string {
	return fmt.Sprintf("length=%d digits=%d symbols=%d case=%s repeat=%s",
		policy.Length, count(policy, secretv1.ClassDigit), count(policy, secretv1.ClassSymbol), policy.Case, policy.Repeat)
}

// Warnings returns a warning if passwords that meet the policy can be guessed.
func Warnings(policy secretv1.PasswordPolicy) []string {
	bits := Bits(policy)
	if bits >= weakBits {
		return nil
	}
	return []string{fmt.Sprintf("spec.policy promises passwords of only %d bits, which can be guessed: ask for a greater length (%d bits are hard to guess)", bits, weakBits)}
}

// strength is the entropy that a character of each kind adds to a password, in hundredths of a bit.
type strength struct {
	mixed, lower, digit, symbol int
}

var (
	// repeated applies if characters may repeat: the binary logarithms of the sizes of the alphabets, rounded down.
	repeated = strength{mixed: 570, lower: 470, digit: 332, symbol: 490}
	// once applies if no character may repeat. Each character leaves fewer choices for the next one from its alphabet,
	// which therefore adds less entropy. These values are constant. Their sum over all characters is less than the true
	// entropy, but by at most 8 bits in the range that matters: up to 64 bits.
	once = strength{mixed: 550, lower: 420, digit: 217, symbol: 450}
)

// Bits estimates the entropy of a password for an attacker who knows the policy, and knows where in the password there
// are letters, digits and symbols. For a possible policy, a result below weakBits is never more than the true
// entropy; if the result is weakBits or more, so is the true entropy. Bits uses whole numbers only, so
// config/policies/password_strength.yaml can compute the same.
func Bits(policy secretv1.PasswordPolicy) int {
	each := repeated
	if policy.Repeat == secretv1.RepeatForbidden {
		each = once
	}
	letter := each.mixed
	if policy.Case == secretv1.CaseLower {
		letter = each.lower
	}
	digits, symbols := count(policy, secretv1.ClassDigit), count(policy, secretv1.ClassSymbol)
	letters := int(policy.Length) - digits - symbols
	return (letters*letter + digits*each.digit + symbols*each.symbol) / 100
}

// count returns how many characters of a class the policy asks for.
//
//workshop:step 5.1b
func count(policy secretv1.PasswordPolicy, class secretv1.CharacterClass) int {
	for _, requirement := range policy.Require {
		if requirement.Class == class {
			return int(ptr.Deref(requirement.Count, 0))
		}
	}
	return 0
}

//workshop:step 5.1c
func charactersOf(class secretv1.CharacterClass) string {
	if class == secretv1.ClassDigit {
		return password.Digits
	}
	return password.Symbols
}

//workshop:step 5.1c
func lettersOf(policy secretv1.PasswordPolicy) string {
	if policy.Case == secretv1.CaseLower {
		return password.LowerLetters
	}
	return password.LowerLetters + password.UpperLetters
}
