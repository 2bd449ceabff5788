package v1_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

// TestWebhookAndSchemaAgreeOnBounds compares the webhook with the schema of v1 on both sides of each bound. The API
// server's own code applies the schema.
func TestWebhookAndSchemaAgreeOnBounds(t *testing.T) {
	g := NewWithT(t)
	problems := schemaOf(t)
	counts := func(class secretv1.CharacterClass, counts ...int32) change {
		return func(object *secretv1.Password) {
			object.Spec.Policy.Require = nil
			for _, count := range counts {
				object.Spec.Policy.Require = append(object.Spec.Policy.Require, secretv1.Requirement{Class: class, Count: &count})
			}
		}
	}
	lengths := func(length int32) change {
		return func(object *secretv1.Password) { object.Spec.Policy.Length = length }
	}
	tests := map[string][]change{
		"the defaults": nil, "no list": {counts("")}, "no case": {letters("")}, "no repetition": {repeat("")},
		"an unknown letter case": {letters("Other")}, "an unknown repetition": {repeat("Other")},
		"lower-case letters": {lower}, "characters once": {once, policy(20, 5, 0)},
		"a name": {secretName("login.shop-1")}, "a name with a capital": {secretName("Login")}, "a name with a path": {secretName("NOT/a name")},
		"a name that ends in a hyphen": {secretName("login-")}, "a name with an empty part": {secretName("a..b")}, "a name with a line feed": {secretName("a\n")},
		"a name that just fits": {secretName(strings.Repeat("a", 253))}, "a name that is too long": {secretName(strings.Repeat("a", 254))},
		"a name with a long part": {secretName(strings.Repeat("a", 64) + ".b")},
		"a minute":                {every(time.Minute)}, "nearly a minute": {every(time.Minute - time.Nanosecond)}, "an age below zero": {every(-time.Hour)}, "no age": {after("")}, "no duration": {after("soon")}, "a day": {after("1d")}, "hours and minutes": {after("1h30m")},
	}
	for _, length := range []int32{-1, 7, 8, 128, 129} {
		tests[fmt.Sprintf("length %d", length)] = []change{counts(""), lengths(length)}
	}
	for _, class := range append(classesOf(g), "Other") {
		for name, these := range map[string][]int32{"0": {0}, "below 0": {-1}, "128": {128}, "129": {129}, "twice": {1, 2}} {
			tests[string(class)+" "+name] = []change{lengths(128), counts(class, these...)}
		}
		tests[string(class)+" without a count"] = []change{func(object *secretv1.Password) {
			object.Spec.Policy.Require = []secretv1.Requirement{{Class: class}}
		}}
	}
	for name, changes := range tests {
		t.Run(name, func(t *testing.T) {
			object := password("bounds", changes...)
			_, err := (&webhookv1.PasswordCustomValidator{}).ValidateCreate(t.Context(), object)
			found := problems(object).ToAggregate()
			NewWithT(t).Expect(err == nil).To(Equal(found == nil), "the error of the webhook is %v, that of the schema is %v: compare api/v1/password_validation.go with the markers in password_types.go", err, found)
		})
	}
}

// TestEveryClassHasCases fails if a class of the schema lacks an accepted or a refused case. For a new class, these
// cases are also the only tests that notice if the policies in config/policies lack it.
func TestEveryClassHasCases(t *testing.T) {
	for _, class := range classesOf(NewWithT(t)) {
		var passes, refused bool
		for _, c := range cases() {
			refused = refused || strings.Contains(c.refused, "no more of class "+string(class)+",")
			object, isHub := c.new.(*secretv1.Password)
			if !isHub || c.refused != "" || object.Spec.Policy.Repeat != secretv1.RepeatForbidden {
				continue
			}
			for _, requirement := range object.Spec.Policy.Require {
				passes = passes || requirement.Class == class && ptr.Deref(requirement.Count, 0) > 0
			}
		}
		if !passes || !refused {
			t.Errorf("cases_test.go needs two cases for the class %s in which no character may repeat: one with as many characters as there are, and one with one more", class)
		}
	}
}

// versionSchema returns the schema of v1 in the CRD.
func versionSchema(g Gomega) *apiextensionsv1.JSONSchemaProps {
	content, err := os.ReadFile("../../../config/crd/bases/secret.example.com_passwords.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(content, definition)).To(Succeed())
	for _, version := range definition.Spec.Versions {
		if version.Name == secretv1.SchemeGroupVersion.Version {
			return version.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

func classesOf(g Gomega) []secretv1.CharacterClass {
	policy := versionSchema(g).Properties["spec"].Properties["policy"]
	var classes []secretv1.CharacterClass
	for _, choice := range policy.Properties["require"].Items.Schema.Properties["class"].Enum {
		var class secretv1.CharacterClass
		g.Expect(yaml.Unmarshal(choice.Raw, &class)).To(Succeed())
		classes = append(classes, class)
	}
	g.Expect(classes).NotTo(BeEmpty())
	return classes
}

// schemaOf returns a function that checks an object against all rules in the schema, including those in CEL.
func schemaOf(t *testing.T) (problems func(*secretv1.Password) field.ErrorList) {
	g := NewWithT(t)
	internal := &apiextensions.JSONSchemaProps{}
	g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(versionSchema(g), internal, nil)).To(Succeed())
	structural, err := schema.NewStructural(internal)
	g.Expect(err).NotTo(HaveOccurred())
	validator, _, err := validation.NewSchemaValidator(internal)
	g.Expect(err).NotTo(HaveOccurred())
	expressions := schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(object *secretv1.Password) field.ErrorList {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		g.Expect(err).NotTo(HaveOccurred())
		problems := validation.ValidateCustomResource(nil, content, validator)
		problems = append(problems, listtype.ValidateListSetsAndMaps(nil, structural, content)...)
		byExpressions, _ := expressions.Validate(t.Context(), nil, structural, content, nil, celconfig.RuntimeCELCostBudget)
		return append(problems, byExpressions...)
	}
}
