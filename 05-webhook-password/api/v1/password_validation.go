package v1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of a spec. The markers in password_types.go put the same bounds into the schema, but
// the API server checks a request only against the schema of the request's version. No schema checks
// the result of a conversion, so the webhook and the controller check it against these.
const (
	minLength, maxLength = 8, 128
	maxCount             = 128
	minRotation          = time.Minute
)

// ValidateSecretName returns an error if no Secret can have the name. The name may be left out.
func (s *PasswordSpec) ValidateSecretName(path *field.Path) field.ErrorList {
	if s.SecretName == "" || len(validation.IsDNS1123Subdomain(s.SecretName)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, s.SecretName, "must be a DNS subdomain: lower-case letters, digits, '-' and '.', at most 253 characters")}
}

// Validate returns an error for each value in the policy that is out of bounds, missing, unknown or a duplicate.
func (p *PasswordPolicy) Validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if p.Length < minLength || p.Length > maxLength {
		problems = append(problems, field.Invalid(path.Child("length"), p.Length, fmt.Sprintf("must be %d to %d", minLength, maxLength)))
	}
	var seen []CharacterClass
	for i, requirement := range p.Require {
		problems = append(problems, requirement.validate(path.Child("require").Index(i))...)
		if slices.Contains(seen, requirement.Class) {
			problems = append(problems, field.Duplicate(path.Child("require").Index(i).Child("class"), requirement.Class))
		}
		seen = append(seen, requirement.Class)
	}
	problems = append(problems, oneOf(path.Child("case"), p.Case, "", CaseMixed, CaseLower)...)
	return append(problems, oneOf(path.Child("repeat"), p.Repeat, "", RepeatAllowed, RepeatForbidden)...)
}

func (r *Requirement) validate(path *field.Path) field.ErrorList {
	problems := oneOf(path.Child("class"), r.Class, ClassDigit, ClassSymbol)
	if r.Count == nil {
		return append(problems, field.Required(path.Child("count"), ""))
	}
	if *r.Count < 0 || *r.Count > maxCount {
		problems = append(problems, field.Invalid(path.Child("count"), *r.Count, fmt.Sprintf("must be 0 to %d", maxCount)))
	}
	return problems
}

// Validate returns an error if the rotation is invalid. A nil rotation is valid.
func (r *Rotation) Validate(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	if after, err := time.ParseDuration(r.After); err != nil || after < minRotation {
		return field.ErrorList{field.Invalid(path.Child("after"), r.After, "must be at least 1m")}
	}
	return nil
}

// EffectiveAfter returns the age at which a password is replaced. It is never less than the schema allows. Otherwise, a
// spec that no schema has checked could make the operator replace the password over and over.
func (r *Rotation) EffectiveAfter() time.Duration {
	after, _ := time.ParseDuration(r.After) // 0 if it is invalid
	return max(after, minRotation)
}

// oneOf returns an error if the value is not supported. If "" is supported, the field may be left out.
func oneOf[T ~string](path *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, slices.DeleteFunc(supported, func(choice T) bool { return choice == "" }))}
}
