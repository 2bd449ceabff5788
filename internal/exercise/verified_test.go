package exercise

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/operator-workshop/internal/repo"
)

func TestFingerprint(t *testing.T) {
	t.Setenv(repo.CacheVariable, t.TempDir())
	stage := newToy(t)
	for _, folder := range []string{"internal/exercise", "tools"} {
		if err := os.MkdirAll(filepath.Join(stage.Root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fingerprint := func() string {
		t.Helper()
		now, err := stage.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	verified := func(fingerprint string) bool {
		t.Helper()
		found, err := stage.Verified(fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	last := fingerprint()
	if verified(last) {
		t.Error("verified before it was noted")
	}
	if err := stage.NoteVerified(last); err != nil || !verified(last) {
		t.Errorf("not verified after it was noted: %v", err)
	}
	for name, counts := range map[string]bool{"01-toy/extra.go": true, "01-toy/exercises.yaml": true, "tools/go.mod": true, "docs/1-toy.md": false} {
		if counts {
			if err := os.WriteFile(filepath.Join(stage.Root, name), []byte("package toy\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			stage.editChapter(t, "# The toy", "# A toy")
		}
		now := fingerprint()
		if changed := now != last; changed != counts || verified(now) == counts {
			t.Errorf("%s: changed=%t, verified=%t", name, changed, verified(now))
		}
		last = now
		if err := stage.NoteVerified(last); err != nil {
			t.Fatal(err)
		}
	}
	stage.editChapter(t, "found 0", "found nothing")
	if fingerprint() == last {
		t.Error("what the chapter shows of a check counts")
	}
}
