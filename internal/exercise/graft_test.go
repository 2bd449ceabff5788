package exercise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestGraftReplacesTheCommentsAboveADeclaration uses markers for a generator, which are above a declaration but not in its
// doc comment.
func TestGraftReplacesTheCommentsAboveADeclaration(t *testing.T) {
	const (
		before = "package toy\n\nvar one = 1 // mine\n\n// Two is two.\nfunc two() int { return 2 }\n"
		after  = "package toy\n\nvar one = 1 // mine\n\n// +marker\n\n// Two is two.\nfunc two() int { return 2 }\n"
		theirs = "package toy\n\nvar one = 1 // yours\n\n// +another\n\n// Two is two.\nfunc two() int { return 2 }\n"
		want   = "package toy\n\nvar one = 1 // yours\n\n// +marker\n\n// Two is two.\nfunc two() int { return 2 }\n"
	)
	found, err := graft("toy.go", []byte(theirs), []byte(before), []byte(after))
	if err != nil || string(found) != want {
		t.Errorf("error %v, expected:\n%s\nfound:\n%s", err, want, found)
	}
	back, err := graft("toy.go", found, []byte(after), []byte(before))
	if want := "package toy\n\nvar one = 1 // yours\n\n// Two is two.\nfunc two() int { return 2 }\n"; err != nil || string(back) != want {
		t.Errorf("taking the change back: error %v, expected:\n%s\nfound:\n%s", err, want, back)
	}
}

func TestGraftTellsBlankDeclarationsApart(t *testing.T) {
	const (
		before = "package toy\n\nvar _ one = two{}\n"
		after  = "package toy\n\nvar _ one = two{}\n\nvar _ = four(\"a\", 1)\n"
		theirs = "package toy\n\nvar _ = four(\"b\", 2)\n\nvar _ one = two{}\n"
		want   = "package toy\n\nvar _ = four(\"b\", 2)\n\nvar _ one = two{}\n\nvar _ = four(\"a\", 1)\n"
	)
	found, err := graft("toy.go", []byte(theirs), []byte(before), []byte(after))
	if err != nil || string(found) != want {
		t.Errorf("error %v, expected:\n%s\nfound:\n%s", err, want, found)
	}
	if back, err := graft("toy.go", found, []byte(after), []byte(before)); err != nil || string(back) != theirs {
		t.Errorf("taking the change back: error %v, expected:\n%s\nfound:\n%s", err, theirs, back)
	}
}

func TestGraftKeepsTheRestOfAYAMLFile(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/graft.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range archive.Files {
		files[file.Name] = file.Data
	}
	expect := func(theirs, before, after, want string) {
		t.Helper()
		found, err := graft("foo.yaml", files[theirs], files[before], files[after])
		if difference := cmp.Diff(string(files[want]), string(found)); err != nil || difference != "" {
			t.Errorf("error %v; - is wanted, + is found:\n%s", err, difference)
		}
	}
	expect("theirs", "before", "after", "grafted")
	expect("grafted", "after", "before", "back")
	expect("before", "before", "after", "after")
	files["broken"] = []byte("kind: [Foo\n")
	expect("broken", "before", "after", "after")
	files["other"] = []byte("- kind\n")
	expect("other", "before", "after", "after")
}
