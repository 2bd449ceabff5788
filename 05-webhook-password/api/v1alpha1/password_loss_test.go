package v1alpha1

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

func requirement(class secretv1.CharacterClass, count int32) secretv1.Requirement {
	return secretv1.Requirement{Class: class, Count: &count}
}

// twins hold the same Password in both versions.
type twins struct {
	spoke *Password
	hub   *secretv1.Password
}

func sayTheSame() map[string]twins {
	pair := func(spoke PasswordSpec, policy secretv1.PasswordPolicy) twins {
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "login", Labels: map[string]string{"team": "red"}}
		return twins{
			spoke: &Password{ObjectMeta: meta, Spec: spoke, Status: PasswordStatus{State: secretv1.StateReady, Fingerprint: "abc"}},
			hub: &secretv1.Password{
				ObjectMeta: *meta.DeepCopy(), Spec: secretv1.PasswordSpec{Policy: policy},
				Status: secretv1.PasswordStatus{State: secretv1.StateReady, Fingerprint: "abc"},
			},
		}
	}
	return map[string]twins{
		"digits and symbols, no character twice": pair(
			PasswordSpec{Length: 24, Digits: new(int32(6)), Symbols: new(int32(2)), CaseSensitive: new(true), DisallowRepeat: true},
			secretv1.PasswordPolicy{
				Length: 24, Require: []secretv1.Requirement{requirement("Digit", 6), requirement("Symbol", 2)},
				Case: secretv1.CaseMixed, Repeat: secretv1.RepeatForbidden,
			},
		),
		"lower-case letters only": pair(
			PasswordSpec{Length: 20, Digits: new(int32(0)), Symbols: new(int32(0)), CaseSensitive: new(false)},
			secretv1.PasswordPolicy{Length: 20, Require: []secretv1.Requirement{}, Case: secretv1.CaseLower, Repeat: secretv1.RepeatAllowed},
		),
	}
}

func TestConvertTo(t *testing.T) {
	for name, same := range sayTheSame() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := &secretv1.Password{}
			mustConvert(t, same.spoke.ConvertTo(found))
			g.Expect(found.Spec).To(Equal(same.hub.Spec), "see hubSpec in password_conversion.go")
			g.Expect(found).To(Equal(same.hub), "see ConvertTo in password_conversion.go")
		})
	}
	err := (&Password{}).ConvertTo(&otherKind{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not a v1 Password")))
}

func TestConvertFrom(t *testing.T) {
	for name, same := range sayTheSame() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := &Password{}
			mustConvert(t, found.ConvertFrom(same.hub))
			g.Expect(found.Spec).To(Equal(same.spoke.Spec), "see spokeSpec in password_conversion.go")
			g.Expect(found).To(Equal(same.spoke), "see ConvertFrom in password_conversion.go")
		})
	}
	err := (&Password{}).ConvertFrom(&otherKind{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not a v1 Password")))
}

// otherKind is a hub, but not a Password.
type otherKind struct{ secretv1.Password }

// TestNothingIsLost reads a Password of v1 as v1alpha1, changes it, and writes it back, as kubectl does.
func TestNothingIsLost(t *testing.T) {
	stored := secretv1.PasswordSpec{
		SecretName: "database",
		Policy: secretv1.PasswordPolicy{
			Length: 24, Require: []secretv1.Requirement{requirement("Symbol", 2), requirement("Digit", 6)}, // no field of v1alpha1 holds this order
			Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
		},
		Rotation: &secretv1.Rotation{After: "720h"},
	}
	tests := map[string]struct {
		change func(*Password)
		want   func(*secretv1.PasswordSpec)
	}{
		"nothing changes":          {change: func(*Password) {}, want: func(*secretv1.PasswordSpec) {}},
		"a client changes a label": {change: func(p *Password) { p.Labels = map[string]string{"team": "red"} }, want: func(*secretv1.PasswordSpec) {}},
		"a client changes the length": {change: func(p *Password) { p.Spec.Length = 30 }, want: func(spec *secretv1.PasswordSpec) {
			spec.Policy.Length = 30
			spec.Policy.Require = []secretv1.Requirement{requirement("Digit", 6), requirement("Symbol", 2)}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub, spoke, after := &secretv1.Password{Spec: *stored.DeepCopy()}, &Password{}, &secretv1.Password{}
			mustConvert(t, spoke.ConvertFrom(hub))
			test.change(spoke)
			mustConvert(t, spoke.ConvertTo(after))
			wanted := *stored.DeepCopy()
			test.want(&wanted)
			g.Expect(after.Spec.Rotation).To(Equal(wanted.Rotation), "the rotation is lost: v1alpha1 has no field for it, so an annotation must keep it")
			g.Expect(after.Spec.SecretName).To(Equal(wanted.SecretName), "the name of the Secret is lost: v1alpha1 has no field for it, so an annotation must keep it")
			g.Expect(after.Spec.Policy).To(Equal(wanted.Policy), "see ConvertTo in password_conversion.go")
			g.Expect(after.Annotations).To(BeEmpty(), "this Password needs no annotation in v1, see ConvertTo and unpack in password_conversion.go")
		})
	}
}

// TestAnnotationsThatDoNotFit converts Passwords whose conversion annotations hold an outdated spec, or something that
// no conversion writes.
func TestAnnotationsThatDoNotFit(t *testing.T) {
	for name, note := range map[string]string{
		"another policy": `{"length":99,"digits":9,"symbols":9,"caseSensitive":false,"policy":{"length":99,"require":[],"case":"Lower"}}`,
		"not JSON":       "note to myself",
		"other JSON":     `{"length":"long","policy":"none"}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub := &secretv1.Password{Spec: secretv1.PasswordSpec{Policy: secretv1.PasswordPolicy{
				Length: 24, Require: []secretv1.Requirement{requirement("Digit", 6)}, Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
			}}}
			spoke := &Password{Spec: PasswordSpec{Length: 24, Digits: new(int32(6)), Symbols: new(int32(0)), CaseSensitive: new(true)}}
			toHub, toSpoke := &secretv1.Password{}, &Password{}

			noted := hub.DeepCopy()
			noted.Annotations = annotate(nil, note)
			mustConvert(t, toSpoke.ConvertFrom(noted))
			g.Expect(toSpoke.Spec).To(Equal(spoke.Spec), "the object's own spec must win, see ConvertFrom and unpack in password_conversion.go")
			g.Expect(toSpoke.Annotations).To(BeEmpty(), "see unpack in password_conversion.go")

			notedSpoke := spoke.DeepCopy()
			notedSpoke.Annotations = annotate(nil, note)
			mustConvert(t, notedSpoke.ConvertTo(toHub))
			g.Expect(toHub.Spec).To(Equal(hub.Spec), "the object's own spec must win, see ConvertTo and unpack in password_conversion.go")
			g.Expect(toHub.Annotations).To(BeEmpty(), "see unpack in password_conversion.go")
		})
	}
}
