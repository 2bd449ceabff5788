package exercise

import "testing"

// Markers for a generator are above a declaration, but not in its doc comment.
func TestGraftTakesTheCommentsAboveADeclaration(t *testing.T) {
	const (
		before = "package toy\n\nvar one = 1 // mine\n\n// Two is two.\nfunc two() int { return 2 }\n"
		after  = "package toy\n\nvar one = 1 // mine\n\n// +marker\n\n// Two is two.\nfunc two() int { return 2 }\n"
		theirs = "package toy\n\nvar one = 1 // yours\n\n// +another\n\n// Two is two.\nfunc two() int { return 2 }\n"
		want   = "package toy\n\nvar one = 1 // yours\n\n// +marker\n\n// Two is two.\nfunc two() int { return 2 }\n"
	)
	found, err := graft("toy.go", []byte(theirs), []byte(before), []byte(after))
	if err != nil || string(found) != want {
		t.Errorf("%v, expected:\n%s\nfound:\n%s", err, want, found)
	}
	back, err := graft("toy.go", found, []byte(after), []byte(before))
	if want := "package toy\n\nvar one = 1 // yours\n\n// Two is two.\nfunc two() int { return 2 }\n"; err != nil || string(back) != want {
		t.Errorf("%v, taken back, expected:\n%s\nfound:\n%s", err, want, back)
	}
}
