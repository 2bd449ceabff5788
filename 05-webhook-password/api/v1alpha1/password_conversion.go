package v1alpha1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// An object is converted from one version to the other and back many times in its
// life, and must come back unchanged. If the other version can't express the spec, the
// conversion keeps the whole original spec in an annotation.
//
// A client of v1alpha1 can still lose information in two ways. If it changes a field of the policy, the policy of v1 is
// rebuilt from what v1alpha1 can express. If it replaces the object and leaves out the annotations, rotation and
// secretName are lost.
const (
	// hubSpecAnnotation is on objects of this version, and holds a spec of v1.
	hubSpecAnnotation = "secret.example.com/v1-spec"
	// spokeSpecAnnotation is on objects of v1, and holds a spec of this version.
	spokeSpecAnnotation = "secret.example.com/v1alpha1-spec"
)

var _ conversion.Convertible = (*Password)(nil)

// ConvertTo converts this Password to v1. It returns an error if hub is not a v1 Password, or if the spec can't be
// written as JSON.
//
//workshop:step 5.12a
func (p *Password) ConvertTo(hub conversion.Hub) error {
	converted, ok := hub.(*secretv1.Password)
	if !ok {
		return fmt.Errorf("convert Password %s: %T is not a v1 Password", p.Name, hub)
	}
	source := p.DeepCopy()
	converted.ObjectMeta = source.ObjectMeta
	converted.Status = secretv1.PasswordStatus(source.Status)
	converted.Spec = hubSpec(source.Spec)
	//workshop:step 5.12c
	if noted, found := unpack[secretv1.PasswordSpec](&converted.ObjectMeta, hubSpecAnnotation); found {
		// A client of this version can change only the fields that this version has. If it has changed none of them,
		// restore the whole spec of v1.
		converted.Spec.SecretName, converted.Spec.Rotation = noted.SecretName, noted.Rotation
		if equality.Semantic.DeepEqual(spokeSpec(noted), source.Spec) {
			converted.Spec = noted
		}
	}
	//workshop:until 5.12d return nil
	//workshop:step 5.12d
	if equality.Semantic.DeepEqual(spokeSpec(converted.Spec), source.Spec) {
		return nil
	}
	//workshop:step 5.12d
	return pack(&converted.ObjectMeta, spokeSpecAnnotation, source.Spec)
}

// ConvertFrom fills in this Password from one of v1. It returns an error if hub is not a v1 Password, or if the spec
// can't be written as JSON.
//
//workshop:step 5.12b
func (p *Password) ConvertFrom(hub conversion.Hub) error {
	original, ok := hub.(*secretv1.Password)
	if !ok {
		return fmt.Errorf("convert a Password from v1: %T is not a v1 Password", hub)
	}
	source := original.DeepCopy()
	p.ObjectMeta = source.ObjectMeta
	p.Status = PasswordStatus(source.Status)
	p.Spec = spokeSpec(source.Spec)
	//workshop:until 5.12c return nil
	//workshop:step 5.12d
	if noted, found := unpack[PasswordSpec](&p.ObjectMeta, spokeSpecAnnotation); found {
		if equality.Semantic.DeepEqual(hubSpec(noted).Policy, source.Spec.Policy) {
			p.Spec = noted
		}
	}
	//workshop:step 5.12c
	if equality.Semantic.DeepEqual(hubSpec(p.Spec), source.Spec) {
		return nil
	}
	//workshop:step 5.12c
	return pack(&p.ObjectMeta, hubSpecAnnotation, source.Spec)
}

// hubSpec translates a spec of this version into one of v1.
//
//workshop:step 5.12a
func hubSpec(spec PasswordSpec) secretv1.PasswordSpec {
	// The list is empty, not nil: the API server fills in the default for a list that is left out.
	policy := secretv1.PasswordPolicy{Length: spec.Length, Require: []secretv1.Requirement{}, Repeat: secretv1.RepeatAllowed}
	if spec.DisallowRepeat {
		policy.Repeat = secretv1.RepeatForbidden
	}
	if spec.CaseSensitive != nil {
		policy.Case = secretv1.CaseLower
		if *spec.CaseSensitive {
			policy.Case = secretv1.CaseMixed
		}
	}
	require := func(class secretv1.CharacterClass, count *int32) {
		if count != nil && *count != 0 {
			policy.Require = append(policy.Require, secretv1.Requirement{Class: class, Count: count})
		}
	}
	require(secretv1.ClassDigit, spec.Digits)
	require(secretv1.ClassSymbol, spec.Symbols)
	return secretv1.PasswordSpec{Policy: policy}
}

// spokeSpec translates the parts of a v1 spec for which this version has fields. It always writes the counts, because a
// missing one would get its default. A spec from an annotation may be invalid: if a class occurs twice, spokeSpec takes
// the first count, and it translates an unknown letter case to lower-case letters.
//
//workshop:step 5.12b
func spokeSpec(spec secretv1.PasswordSpec) PasswordSpec {
	count := func(class secretv1.CharacterClass) *int32 {
		for _, requirement := range spec.Policy.Require {
			if requirement.Class == class {
				return new(ptr.Deref(requirement.Count, 0))
			}
		}
		return new(int32(0))
	}
	converted := PasswordSpec{
		Length:         spec.Policy.Length,
		Digits:         count(secretv1.ClassDigit),
		Symbols:        count(secretv1.ClassSymbol),
		DisallowRepeat: spec.Policy.Repeat == secretv1.RepeatForbidden,
	}
	if spec.Policy.Case != "" {
		converted.CaseSensitive = new(spec.Policy.Case == secretv1.CaseMixed)
	}
	return converted
}

//workshop:step 5.12c
func pack(object *metav1.ObjectMeta, name string, spec any) error {
	content, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write the annotation %s: %w", name, err)
	}
	metav1.SetMetaDataAnnotation(object, name, string(content))
	return nil
}

// unpack takes a spec out of the named annotation. It removes the other annotation, too, which never belongs on an
// object of the version that is being converted. An annotation that can't be read was written by someone else, and is
// dropped: if it made the conversion fail, clients of v1alpha1 could neither read nor delete the object.
//
//workshop:step 5.12c
func unpack[T any](object *metav1.ObjectMeta, name string) (spec T, found bool) {
	content, found := object.Annotations[name]
	delete(object.Annotations, hubSpecAnnotation)
	delete(object.Annotations, spokeSpecAnnotation)
	if len(object.Annotations) == 0 {
		object.Annotations = nil
	}
	if !found {
		return spec, false
	}
	if err := json.Unmarshal([]byte(content), &spec); err != nil {
		var none T
		return none, false
	}
	return spec, true
}
