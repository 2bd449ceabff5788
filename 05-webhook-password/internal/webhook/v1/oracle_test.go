package v1_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
)

// review contains the fields of an AdmissionReview that mayAllow reads. Its types are not those of the code under test,
// so that a mistake in those can't mislead mayAllow.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		Kind        reviewedKind `json:"kind"`
		SubResource string       `json:"subResource"`
		Operation   string       `json:"operation"`
		Object      *reviewed    `json:"object"`
		OldObject   *reviewed    `json:"oldObject"`
	} `json:"request"`
}

type reviewedKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type reviewed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		SecretName string         `json:"secretName"`
		Policy     reviewedPolicy `json:"policy"`
	} `json:"spec"`
}

type reviewedPolicy struct {
	Length  int64                `json:"length"`
	Require []reviewedCharacters `json:"require"`
	Case    string               `json:"case"`
	Repeat  string               `json:"repeat"`
}

type reviewedCharacters struct {
	Class string `json:"class"`
	Count int64  `json:"count"`
}

// mayAllow reports whether a webhook may let a request pass. It knows neither the rules for a rotation nor those for
// the name in a new Password. A request with a content type other than application/json may not pass. Any other request
// that the API server would never send may pass, because the answer has no effect.
func mayAllow(contentType string, body []byte, validating bool) bool {
	if contentType != "application/json" {
		return false
	}
	var asked review
	if json.Unmarshal(body, &asked) != nil || !asked.isAboutPassword() || !asked.hasObjects() {
		return true
	}
	object, old := asked.Request.Object, asked.Request.OldObject
	switch {
	case !validating:
		return true // the defaulting webhook refuses nothing
	case asked.Request.Operation == "CREATE":
		return object.Spec.Policy.isPossible()
	case asked.Request.Operation == "UPDATE":
		return object.mayFollow(old)
	default:
		return old.Metadata.Annotations["secret.example.com/deletion-protection"] != "enabled"
	}
}

// hasObjects reports whether the review has the objects that the operation requires.
func (r *review) hasObjects() bool {
	switch r.Request.Operation {
	case "CREATE":
		return r.Request.Object.isPassword()
	case "UPDATE":
		return r.Request.Object.isPassword() && r.Request.OldObject.isPassword()
	case "DELETE":
		return r.Request.OldObject.isPassword()
	}
	return false
}

func (r *review) isAboutPassword() bool {
	return r.APIVersion == "admission.k8s.io/v1" && r.Kind == "AdmissionReview" && r.Request != nil &&
		r.Request.Kind == reviewedKind{Group: "secret.example.com", Version: "v1", Kind: "Password"} && r.Request.SubResource == ""
}

func (r *reviewed) isPassword() bool {
	return r != nil && r.APIVersion == "secret.example.com/v1" && r.Kind == "Password"
}

func (r *reviewed) mayFollow(old *reviewed) bool {
	return r.secretName() == old.secretName() && (r.Spec.Policy.same(old.Spec.Policy) || r.Spec.Policy.isPossible())
}

func (r *reviewed) secretName() string {
	if r.Spec.SecretName == "" {
		return r.Metadata.Name
	}
	return r.Spec.SecretName
}

func (p reviewedPolicy) same(other reviewedPolicy) bool {
	return p.Length == other.Length && p.Case == other.Case && p.Repeat == other.Repeat && slices.Equal(p.Require, other.Require)
}

// isPossible checks the bounds of the schema of v1, too, because no schema has checked a request in v1alpha1 against
// them.
func (p reviewedPolicy) isPossible() bool {
	return p.isInBounds() && p.hasEnough()
}

func (p reviewedPolicy) isInBounds() bool {
	inBounds := p.Length >= 8 && p.Length <= 128 &&
		slices.Contains([]string{"", "Mixed", "Lower"}, p.Case) && slices.Contains([]string{"", "Allowed", "Forbidden"}, p.Repeat)
	unused := map[string]bool{"Digit": true, "Symbol": true}
	for _, required := range p.Require {
		inBounds = inBounds && unused[required.Class] && required.Count >= 0 && required.Count <= 128
		unused[required.Class] = false
	}
	return inBounds
}

// hasEnough reports whether the counts fit into the length and, if no character may repeat, whether each class has
// enough characters.
func (p reviewedPolicy) hasEnough() bool {
	available := map[string]int64{"Digit": 10, "Symbol": 30}
	letters, alphabet, enough := p.Length, int64(52), true
	if p.Case == "Lower" {
		alphabet = 26
	}
	for _, required := range p.Require {
		letters -= required.Count
		enough = enough && required.Count <= available[required.Class]
	}
	return letters >= 0 && (p.Repeat != "Forbidden" || enough && letters <= alphabet)
}
