package v1_test

import (
	"encoding/json"
	"strings"
	"time"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

// notedCases returns requests in v1alpha1 with a spec of v1 in the annotation in which the conversion keeps it. No
// schema checks that spec, so only admission can refuse it if it is invalid.
func notedCases() map[string]admissionCase {
	noted := func(name string, changes ...change) *secretv1alpha1.Password {
		return alpha(name, 20, 5, 0, note(changes...))
	}
	alsoSymbols := func(counts ...int32) change {
		return func(object *secretv1.Password) {
			for _, count := range counts {
				object.Spec.Policy.Require = append(object.Spec.Policy.Require, secretv1.Requirement{Class: secretv1.ClassSymbol, Count: &count})
			}
		}
	}
	uncounted := func(object *secretv1.Password) {
		object.Spec.Policy.Require[len(object.Spec.Policy.Require)-1].Count = nil
	}
	return map[string]admissionCase{
		"noted: what v1 allows":             {new: noted("new", secretName("login"), rotation)},
		"noted: a minute":                   {new: noted("new", every(time.Minute))},
		"noted: a nanosecond":               {new: noted("new", every(time.Nanosecond)), refused: `spec.rotation.after: Invalid value: "1ns": must be at least 1m`},
		"noted: an invalid name":            {new: noted("new", secretName("NOT/a name")), refused: `spec.secretName: Invalid value: "NOT/a name": must be a DNS subdomain`},
		"noted: a long name":                {new: noted("new", secretName(strings.Repeat("a", 254))), refused: "must be a DNS subdomain"},
		"noted: a name that just fits":      {new: noted("new", secretName(strings.Repeat("a", 253)))},
		"noted: an unknown class":           {new: noted("new", otherClass(3)), refused: `supported values: "Digit", "Symbol"`},
		"noted: an unknown class, negative": {new: noted("new", otherClass(-7)), refused: `supported values: "Digit", "Symbol"`},
		"noted: a class twice":              {new: noted("new", alsoSymbols(0, 3)), refused: `spec.policy.require[2].class: Duplicate value: "Symbol"`},
		"noted: a negative count":           {new: noted("new", alsoSymbols(0, -7)), refused: "spec.policy.require[2].count: Invalid value: -7: must be 0 to 128"},
		"noted: no count":                   {new: noted("new", alsoSymbols(0), uncounted), refused: "Required value"},
		"noted: an unknown letter case":     {new: alpha("new", 20, 5, 0, alphaLower, note(letters("Other"))), refused: `spec.policy.case: Unsupported value: "Other": supported values: "Mixed", "Lower"`},
		"noted: an unknown repetition":      {new: noted("new", repeat("Other")), refused: `spec.policy.repeat: Unsupported value: "Other": supported values: "Allowed", "Forbidden"`},
		"noted: a nanosecond, later":        {old: alpha("hurried", 20, 5, 0), new: noted("hurried", every(time.Nanosecond)), refused: "must be at least 1m"},
		"noted: an unknown class, later":    {old: alpha("classed", 20, 5, 0), new: noted("classed", otherClass(3)), refused: `supported values: "Digit", "Symbol"`},
		"noted: another name, later":        {old: alpha("renamed", 20, 5, 0), new: noted("renamed", secretName("NOT/a name")), refused: `spec.secretName: Invalid value: "NOT/a name": can't be changed`},
		"noted: stored unchecked, and labelled": {
			old: noted("stored", every(time.Nanosecond), otherClass(-7), secretName("NOT/a name")),
			new: labelled(noted("stored", every(time.Nanosecond), otherClass(-7), secretName("NOT/a name"))),
		},
	}
}

// note returns a change that puts a spec of v1 into the annotation in which the conversion keeps it.
func note(changes ...change) alphaChange {
	return func(object *secretv1alpha1.Password) {
		spec, err := json.Marshal(password("", changes...).Spec)
		if err != nil {
			panic(err) // the cases are wrong
		}
		object.Annotations = map[string]string{"secret.example.com/v1-spec": string(spec)}
	}
}

func labelled(object *secretv1alpha1.Password) *secretv1alpha1.Password {
	object.Labels = map[string]string{"team": "red"}
	return object
}
