package v1_test

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

// admissionCase is a request and its expected result. The tests try it in three ways: on the
// handlers of the webhooks alone, through an API server with the webhooks, and through an API
// server with config/policies instead. All three must give the same result.
type admissionCase struct {
	// old is the existing object, or nil for a create. No other case uses its name.
	old client.Object
	// new is the requested object, or nil for a delete.
	new client.Object
	// as is the user who sends the request. If it is empty, an administrator sends it.
	as string
	// unasked is true if the request passes only because a match condition keeps the API server from calling the webhook.
	// The handlers would refuse such a request, so they don't get it.
	unasked bool

	// refused is a part of the error message, or empty if the request passes.
	refused string
	// forbidden is true if the refusal is Forbidden rather than Invalid.
	forbidden bool
	// warning is a part of the only warning, or empty if there is none.
	warning string
	// secretName is the spec.secretName of the object that passes. It is noName if the object must have none, and empty if
	// that does not matter.
	secretName string
}

const (
	tooManyDigits  = "must be at most 10, because there are no more of class Digit, and none may repeat"
	tooManySymbols = "must be at most 30, because there are no more of class Symbol, and none may repeat"
	manyLetters    = "but there are only 52, and none may repeat"
	manySmall      = "but there are only 26, and none may repeat"
	protected      = `metadata.annotations[secret.example.com/deletion-protection]: Forbidden: it is "enabled": remove the annotation first`

	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	editor              = "editor"

	noName = "(none)"
)

// cases returns new copies of all cases, because trying a case changes its objects.
func cases() map[string]admissionCase {
	all := map[string]admissionCase{}
	for _, some := range []map[string]admissionCase{policyCases(), strengthCases(), oldPolicyCases(), nameCases(), deleteCases(), alphaCases(), notedCases()} {
		maps.Copy(all, some)
	}
	return all
}

// policyCases has cases on both sides of each limit that the size of an alphabet sets for a policy.
func policyCases() map[string]admissionCase {
	return map[string]admissionCase{
		"the defaults":                        {new: password("new"), secretName: "new"},
		"11 digits, repeated":                 {new: password("new", policy(20, 11, 0)), secretName: "new"},
		"31 symbols, repeated":                {new: password("new", policy(60, 0, 31)), secretName: "new"},
		"128 letters, repeated":               {new: password("new", policy(128, 0, 0)), secretName: "new"},
		"10 digits once":                      {new: password("new", policy(30, 10, 0), once), secretName: "new"},
		"11 digits once":                      {new: password("new", policy(30, 11, 0), once), refused: "spec.policy.require[0].count: Invalid value: 11: " + tooManyDigits},
		"30 symbols once":                     {new: password("new", policy(60, 0, 30), once), secretName: "new"},
		"31 symbols once":                     {new: password("new", policy(60, 0, 31), once), refused: "spec.policy.require[1].count: Invalid value: 31: " + tooManySymbols},
		"52 letters once":                     {new: password("new", policy(52, 0, 0), once), secretName: "new"},
		"53 letters once":                     {new: password("new", policy(53, 0, 0), once), refused: "spec.policy.length: Invalid value: 53: leaves 53 characters for letters, " + manyLetters},
		"26 lower-case letters once":          {new: password("new", policy(26, 0, 0), lower, once), secretName: "new"},
		"27 lower-case letters once":          {new: password("new", policy(27, 0, 0), lower, once), refused: "spec.policy.length: Invalid value: 27: leaves 27 characters for letters, " + manySmall},
		"every character once":                {new: password("new", policy(92, 10, 30), once), secretName: "new"},
		"every character once, in lower case": {new: password("new", policy(66, 10, 30), lower, once), secretName: "new"},
		"one letter more than there are":      {new: password("new", policy(93, 10, 30), once), refused: "leaves 53 characters for letters, " + manyLetters},
		"symbols before digits":               {new: password("new", symbolsFirst(60, 31, 10), once), refused: "spec.policy.require[0].count: Invalid value: 31: " + tooManySymbols},
		"two classes that run out":            {new: password("new", policy(60, 11, 31), once), refused: tooManyDigits},
	}
}

// strengthCases has cases on both sides of the limit of 64 bits.
func strengthCases() map[string]admissionCase {
	return map[string]admissionCase{
		"8 letters":                  {new: password("new", policy(8, 0, 0)), warning: "spec.policy promises passwords of only 45 bits", secretName: "new"},
		"11 letters":                 {new: password("new", policy(11, 0, 0)), warning: "of only 62 bits", secretName: "new"},
		"12 letters":                 {new: password("new", policy(12, 0, 0)), secretName: "new"},
		"13 lower-case letters":      {new: password("new", policy(13, 0, 0), lower), warning: "of only 61 bits", secretName: "new"},
		"14 lower-case letters":      {new: password("new", policy(14, 0, 0), lower), secretName: "new"},
		"19 digits":                  {new: password("new", policy(19, 19, 0)), warning: "of only 63 bits", secretName: "new"},
		"20 digits":                  {new: password("new", policy(20, 20, 0)), secretName: "new"},
		"13 symbols":                 {new: password("new", policy(13, 0, 13)), warning: "of only 63 bits", secretName: "new"},
		"14 symbols":                 {new: password("new", policy(14, 0, 14)), secretName: "new"},
		"15 lower-case letters once": {new: password("new", policy(15, 0, 0), lower, once), warning: "of only 63 bits", secretName: "new"},
		"16 lower-case letters once": {new: password("new", policy(16, 0, 0), lower, once), secretName: "new"},
		"14 symbols once":            {new: password("new", policy(14, 0, 14), once), warning: "of only 63 bits", secretName: "new"},
		"weak and impossible":        {new: password("new", policy(11, 11, 0), once), refused: tooManyDigits, warning: "of only 23 bits"},
		"8 characters of all kinds":  {new: password("new", policy(8, 2, 2)), warning: "of only 39 bits", secretName: "new"},
	}
}

// oldPolicyCases are changes to stored objects, some of which were stored unchecked.
func oldPolicyCases() map[string]admissionCase {
	hopeless, weak := policy(53, 0, 0), policy(8, 0, 0)
	return map[string]admissionCase{
		"a label on an impossible one":          {old: password("labelled", hopeless, once), new: password("labelled", hopeless, once, label)},
		"the default name of an impossible one": {old: password("named", hopeless, once), new: password("named", hopeless, once, secretName("named")), secretName: "named"},
		"a rotation of an impossible one":       {old: password("rotating", hopeless, once), new: password("rotating", hopeless, once, rotation), secretName: "rotating"},
		"another impossible policy":             {old: password("worse", hopeless, once), new: password("worse", policy(54, 0, 0), once), refused: "leaves 54 characters for letters"},
		"a rotation after a nanosecond":         {old: password("hasty"), new: password("hasty", every(time.Nanosecond)), refused: "must be at least 1m"},
		"a possible policy instead":             {old: password("better", hopeless, once), new: password("better", hopeless), secretName: "better"},
		"an impossible policy instead":          {old: password("spoilt"), new: password("spoilt", policy(30, 11, 0), once), refused: tooManyDigits},
		"a label on a weak one":                 {old: password("weak-labelled", weak), new: password("weak-labelled", weak, label)},
		"a rotation of a weak one":              {old: password("weak-rotating", weak), new: password("weak-rotating", weak, rotation), secretName: "weak-rotating"},
		"a weak policy instead":                 {old: password("weakened"), new: password("weakened", weak), warning: "of only 45 bits", secretName: "weakened"},
		"an impossible policy and another name": {old: password("both"), new: password("both", hopeless, once, secretName("other")), refused: "spec."},
	}
}

// nameCases are about spec.secretName, in new Passwords and in updates.
func nameCases() map[string]admissionCase {
	return map[string]admissionCase{
		"an explicit name":          {new: password("new", secretName("login")), secretName: "login"},
		"a generated name":          {new: generated(), secretName: noName},
		"the default name, added":   {old: password("default-name"), new: password("default-name", secretName("default-name")), secretName: "default-name"},
		"the default name, removed": {old: password("same-name", secretName("same-name")), new: password("same-name", rotation), secretName: "same-name"},
		"the same name":             {old: password("kept", secretName("login")), new: password("kept", secretName("login"), rotation), secretName: "login"},
		"another name": {old: password("moved", secretName("login")), new: password("moved", secretName("other")),
			refused: `spec.secretName: Invalid value: "other": can't be changed from "login": make another Password`},
		"another name than the default": {old: password("moving"), new: password("moving", secretName("other")),
			refused: `spec.secretName: Invalid value: "other": can't be changed from "moving": make another Password`},
		"a name that is removed": {old: password("nameless", secretName("login")), new: password("nameless"),
			refused: `can't be changed from "login": make another Password`},
	}
}

func deleteCases() map[string]admissionCase {
	return map[string]admissionCase{
		"an ordinary one":                                   {old: password("ordinary")},
		"a protected one":                                   {old: password("protected", annotation("enabled")), refused: protected, forbidden: true},
		"a protected one, by another user":                  {old: password("protected-from-editors", annotation("enabled")), as: editor, refused: protected, forbidden: true},
		"one that is no longer protected":                   {old: password("unprotected", annotation("disabled"))},
		"a protected one, with its namespace":               {old: password("in-a-namespace", annotation("enabled")), as: namespaceController, unasked: true},
		"a protected one, with its owner":                   {old: password("owned", annotation("enabled")), as: garbageCollector, unasked: true},
		"removing the protection":                           {old: password("freed", annotation("enabled")), new: password("freed")},
		"a label on a protected one":                        {old: password("keeper", annotation("enabled")), new: password("keeper", annotation("enabled"), label)},
		"an update by a user who may delete protected ones": {old: password("collected"), new: password("collected", policy(53, 0, 0), once), as: garbageCollector, refused: manyLetters},
	}
}

// alphaCases are requests in v1alpha1. The webhooks and the policies get the objects in v1.
func alphaCases() map[string]admissionCase {
	return map[string]admissionCase{
		"v1alpha1: the defaults":               {new: alpha("new", 20, 5, 0)},
		"v1alpha1: 10 digits once":             {new: alpha("new", 30, 10, 0, alphaOnce)},
		"v1alpha1: 11 digits once":             {new: alpha("new", 30, 11, 0, alphaOnce), refused: "spec.policy.require[0].count: Invalid value: 11: " + tooManyDigits},
		"v1alpha1: 31 symbols once":            {new: alpha("new", 60, 0, 31, alphaOnce), refused: tooManySymbols},
		"v1alpha1: 53 letters once":            {new: alpha("new", 53, 0, 0, alphaOnce), refused: "leaves 53 characters for letters, " + manyLetters},
		"v1alpha1: 26 lower-case letters once": {new: alpha("new", 26, 0, 0, alphaOnce, alphaLower)},
		"v1alpha1: 27 lower-case letters once": {new: alpha("new", 27, 0, 0, alphaOnce, alphaLower), refused: manySmall},
		"v1alpha1: 8 letters":                  {new: alpha("new", 8, 0, 0), warning: "of only 45 bits"},
		"v1alpha1: another length":             {old: alpha("longer", 20, 5, 0), new: alpha("longer", 21, 5, 0)},
		"v1alpha1: an impossible length":       {old: alpha("too-long", 52, 0, 0, alphaOnce), new: alpha("too-long", 53, 0, 0, alphaOnce), refused: manyLetters},
		"v1alpha1: an ordinary one":            {old: alpha("ordinary-alpha", 20, 5, 0)},
		"v1alpha1: a protected one":            {old: alpha("protected-alpha", 20, 5, 0, alphaProtected), refused: protected, forbidden: true},
		"v1alpha1: no letter is needed":        {new: alpha("new", 10, 10, 0, alphaOnce), warning: "of only 21 bits"},
	}
}

type change func(*secretv1.Password)

// password returns a Password with the defaults of the schema, after the changes.
func password(name string, changes ...change) *secretv1.Password {
	object := &secretv1.Password{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: secretv1.PasswordSpec{Policy: secretv1.PasswordPolicy{
		Length: 20, Require: []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: new(int32(5))}}, Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
	}}}
	for _, change := range changes {
		change(object)
	}
	return object
}

func generated() *secretv1.Password {
	object := password("")
	object.GenerateName = "generated-"
	return object
}

func policy(length, digits, symbols int32) change {
	return func(object *secretv1.Password) {
		object.Spec.Policy.Length = length
		object.Spec.Policy.Require = []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: &digits}, {Class: secretv1.ClassSymbol, Count: &symbols}}
	}
}

func symbolsFirst(length, symbols, digits int32) change {
	return func(object *secretv1.Password) {
		object.Spec.Policy.Length = length
		object.Spec.Policy.Require = []secretv1.Requirement{{Class: secretv1.ClassSymbol, Count: &symbols}, {Class: secretv1.ClassDigit, Count: &digits}}
	}
}

func secretName(name string) change {
	return func(object *secretv1.Password) { object.Spec.SecretName = name }
}

func annotation(protection string) change {
	return func(object *secretv1.Password) {
		object.Annotations = map[string]string{secretv1.ProtectionAnnotation: protection}
	}
}

func once(object *secretv1.Password)     { object.Spec.Policy.Repeat = secretv1.RepeatForbidden }
func lower(object *secretv1.Password)    { object.Spec.Policy.Case = secretv1.CaseLower }
func label(object *secretv1.Password)    { object.Labels = map[string]string{"team": "red"} }
func rotation(object *secretv1.Password) { every(time.Hour)(object) }

func every(age time.Duration) change { return after(age.String()) }

func after(age string) change {
	return func(object *secretv1.Password) { object.Spec.Rotation = &secretv1.Rotation{After: age} }
}

func letters(choice secretv1.LetterCase) change {
	return func(object *secretv1.Password) { object.Spec.Policy.Case = choice }
}

func repeat(choice secretv1.Repetition) change {
	return func(object *secretv1.Password) { object.Spec.Policy.Repeat = choice }
}

func otherClass(count int32) change {
	return func(object *secretv1.Password) {
		object.Spec.Policy.Require = append(object.Spec.Policy.Require, secretv1.Requirement{Class: "Other", Count: &count})
	}
}

type alphaChange func(*secretv1alpha1.Password)

func alpha(name string, length, digits, symbols int32, changes ...alphaChange) *secretv1alpha1.Password {
	object := &secretv1alpha1.Password{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: secretv1alpha1.PasswordSpec{
		Length: length, Digits: &digits, Symbols: &symbols, CaseSensitive: new(true),
	}}
	for _, change := range changes {
		change(object)
	}
	return object
}

func alphaOnce(object *secretv1alpha1.Password)  { object.Spec.DisallowRepeat = true }
func alphaLower(object *secretv1alpha1.Password) { object.Spec.CaseSensitive = new(false) }
func alphaProtected(object *secretv1alpha1.Password) {
	object.Annotations = map[string]string{secretv1.ProtectionAnnotation: secretv1.ProtectionEnabled}
}
