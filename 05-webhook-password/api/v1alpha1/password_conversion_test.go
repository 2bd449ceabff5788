package v1alpha1

import (
	"encoding/json"
	"maps"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// FuzzSpokeRoundTrip converts a Password of this version to v1 and back.
func FuzzSpokeRoundTrip(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, seed int64) {
		before, hub, after := &Password{}, &secretv1.Password{}, &Password{}
		fill(seed, before)
		mustConvert(t, before.DeepCopy().ConvertTo(hub))
		mustConvert(t, after.ConvertFrom(hub))
		expectSame(t, before, after)
	})
}

// FuzzHubRoundTrip converts a Password of v1 to this version and back.
func FuzzHubRoundTrip(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, seed int64) {
		before, spoke, after := &secretv1.Password{}, &Password{}, &secretv1.Password{}
		fill(seed, before)
		mustConvert(t, spoke.ConvertFrom(before.DeepCopy()))
		mustConvert(t, spoke.ConvertTo(after))
		expectSame(t, before, after)
	})
}

// FuzzBookkeeping converts Passwords whose conversion annotations don't fit: they hold an outdated spec,
// a spec of the other version, or nonsense.
func FuzzBookkeeping(f *testing.F) {
	for seed := range int64(300) {
		f.Add(seed, `{"rotation":{"after":"1ns"},"secretName":"NOT/a name"}`)
		f.Add(seed, `{"length":20,"digits":5,"symbols":0,"caseSensitive":true}`)
		f.Add(seed, `not JSON`)
	}
	f.Fuzz(func(t *testing.T, seed int64, note string) {
		hub, spoke, after := &secretv1.Password{}, &Password{}, &secretv1.Password{}
		fill(seed, hub)
		wanted := hub.DeepCopy()
		hub.Annotations = annotate(hub.Annotations, note)
		mustConvert(t, spoke.ConvertFrom(hub))
		expectNoNote(t, spoke, spokeSpecAnnotation)
		mustConvert(t, spoke.ConvertTo(after))
		expectNoNote(t, after, hubSpecAnnotation)
		delete(after.Annotations, spokeSpecAnnotation) // objects of v1 may have this one
		expectSame(t, wanted, after)

		former, converted, again := &Password{}, &secretv1.Password{}, &Password{}
		fill(seed, former)
		spec := former.DeepCopy().Spec
		former.Annotations = annotate(former.Annotations, note)
		mustConvert(t, former.ConvertTo(converted))
		expectNoNote(t, converted, hubSpecAnnotation)
		mustConvert(t, again.ConvertFrom(converted))
		expectNoNote(t, again, spokeSpecAnnotation)
		if !equality.Semantic.DeepEqual(spec, again.Spec) {
			t.Errorf("the spec has changed on the way there and back, see password_conversion.go:\n%s", cmp.Diff(spec, again.Spec))
		}
	})
}

func annotate(annotations map[string]string, note string) map[string]string {
	annotated := maps.Clone(annotations)
	if annotated == nil {
		annotated = map[string]string{}
	}
	annotated[hubSpecAnnotation], annotated[spokeSpecAnnotation] = note, note
	return annotated
}

func expectNoNote(t *testing.T, object metav1.Object, name string) {
	t.Helper()
	if note, found := object.GetAnnotations()[name]; found {
		t.Errorf("the annotation %s belongs on objects of the other version only, see unpack in password_conversion.go: %s", name, note)
	}
}

// A list that is left out gets the default of v1, which asks for digits.
func TestAnEmptyRequireListIsNotLeftOut(t *testing.T) {
	hub := &secretv1.Password{}
	mustConvert(t, (&Password{Spec: PasswordSpec{Length: 20, Digits: new(int32(0)), Symbols: new(int32(0))}}).ConvertTo(hub))
	content, err := json.Marshal(hub)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), `"require":[]`) {
		t.Errorf("the API server would fill in digits that the author did not ask for, see hubSpec: %s", content)
	}
}

// seed adds inputs, so that `go test` tries some objects even without -fuzz.
func seed(f *testing.F) {
	for seed := range int64(300) {
		f.Add(seed)
	}
}

// fill gives the object random contents, which the API server might refuse.
func fill(seed int64, object any) {
	randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.3).NumElements(0, 3).Funcs(
		func(meta *metav1.TypeMeta, _ randfill.Continue) { *meta = metav1.TypeMeta{} },
		func(fields *metav1.FieldsV1, _ randfill.Continue) { fields.SetRawBytes([]byte("{}")) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(1<<32), 0) },
		func(choice *secretv1.LetterCase, c randfill.Continue) {
			*choice = []secretv1.LetterCase{secretv1.CaseMixed, secretv1.CaseLower, "", "Other"}[c.Intn(4)]
		},
		func(choice *secretv1.Repetition, c randfill.Continue) {
			*choice = []secretv1.Repetition{secretv1.RepeatAllowed, secretv1.RepeatForbidden, "", "Other"}[c.Intn(4)]
		},
		func(class *secretv1.CharacterClass, c randfill.Continue) {
			*class = []secretv1.CharacterClass{secretv1.ClassDigit, secretv1.ClassSymbol, "", "Other"}[c.Intn(4)]
		},
		func(requirement *secretv1.Requirement, c randfill.Continue) {
			c.FillNoCustom(requirement)
			if requirement.Count != nil {
				*requirement.Count = int32(c.Intn(4))
			}
		},
	).Fill(object)
}

func mustConvert(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("clients of the other version can neither read nor delete a Password that can't be converted: %v", err)
	}
}

func expectSame(t *testing.T, before, after runtime.Object) {
	t.Helper()
	if !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("something was lost (-) or added (+) on the way there and back, see password_conversion.go:\n%s", cmp.Diff(before, after))
	}
}
