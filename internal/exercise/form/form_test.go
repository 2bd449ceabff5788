package form

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// order lists which of the steps 1 to 3 are pending.
type order []string

func (o order) Pending(id string) (bool, error) {
	if !slices.Contains([]string{"1", "2", "3"}, id) {
		return false, errors.New("there is no step " + id)
	}
	return slices.Contains(o, id), nil
}

func (o order) Title(id string) string { return "Do " + id }

// TestDerive reads testdata. Each archive contains a finished file and some of its forms, whose names list the pending
// steps.
func TestDerive(t *testing.T) {
	for _, name := range []string{"sync.go", "types.go", "role.yaml", "crd.yaml"} {
		archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, wanted := range archive.Files[1:] {
			t.Run(name+" "+wanted.Name, func(t *testing.T) {
				pending := order(strings.Fields(strings.TrimPrefix(wanted.Name, "pending")))
				derived, exists, err := Derive(name, archive.Files[0].Data, pending)
				if err != nil || !exists {
					t.Fatalf("exists=%t, error %v", exists, err)
				}
				if difference := cmp.Diff(string(wanted.Data), string(derived)); difference != "" {
					t.Errorf("- is wanted, + is derived:\n%s", difference)
				}
			})
		}
	}
}

func TestDeriveLeavesOutFiles(t *testing.T) {
	for name, source := range map[string]string{
		"later.go":   "//workshop:file 2\n\npackage later\n",
		"given.go":   "//workshop:given 2\n\n// Package later is given.\npackage later\n",
		"later.yaml": "# workshop:file 2\nkind: Foo\n",
	} {
		if _, exists, err := Derive(name, []byte(source), order{"2"}); exists || err != nil {
			t.Errorf("%s before its step: exists=%t, error %v", name, exists, err)
		}
		derived, exists, err := Derive(name, []byte(source), order{})
		if !exists || err != nil || strings.Contains(string(derived), "workshop") {
			t.Errorf("%s after its step: exists=%t, error %v:\n%s", name, exists, err, derived)
		}
	}
}

// Learners read the stubs, so a stub returns common structs as a person would write them.
func TestStubsReturnZeroValues(t *testing.T) {
	const source = "package a\n\n//workshop:step 1\nfunc f() (ctrl.Result, other.Kind, []int, error) { return g() }\n"
	derived, _, err := Derive("a.go", []byte(source), order{"1"})
	if want := "return ctrl.Result{}, *new(other.Kind), nil, nil"; err != nil || !strings.Contains(string(derived), want) {
		t.Errorf("error %v, expected %q in:\n%s", err, want, derived)
	}
}

func TestDeriveRefusesWrongMarks(t *testing.T) {
	for message, source := range map[string]string{
		"line 3: there is no step 4":                                                 "package a\n\n//workshop:step 4\nfunc f() {}\n",
		`line 3: "workshop:setp 1": the marks are workshop:step`:                     "package a\n\n//workshop:setp 1\nfunc f() {}\n",
		`line 3: "workshop:step" is not a mark`:                                      "package a\n\n//workshop:step\nfunc f() {}\n",
		"line 4: expected a declaration, a field, a statement, a case or an element": "package a\n\nfunc f() {\n\t//workshop:step 1\n}\n",
		"line 3: workshop:until 1 has no effect on line 5":                           "package a\n\n//workshop:step 1\nfunc f() int {\n\t//workshop:until 1 return 2\n\treturn 3\n}\n",
		"line 4: workshop:until belongs on a line of its own":                        "package a\n\nfunc f() {\n\tf() //workshop:until 1 g()\n}\n",
	} {
		_, _, err := Derive("a.go", []byte(source), order{"1"})
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("expected an error with %q\nfound %v", message, err)
		}
	}
	if _, _, err := Derive("a.yaml", []byte("a:\n  # workshop:step 1\n"), order{"1"}); err == nil {
		t.Error("expected an error for a mark above nothing")
	}
}
