package exercise

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestTheMachineIsBlamed checks a step that is recorded as done, while go or a test prints an error that is the
// machine's fault. The step must stay done.
func TestTheMachineIsBlamed(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(*testing.T, *Stage)
		wanted string
	}{
		"a full disk while compiling": {
			spoil:  fakeGo("test)", "write $WORK/b001/_pkg_.a: no space left on device"),
			wanted: "the disk is full: free some space and run the same command again (write $WORK/b001/_pkg_.a: no space left on device)",
		},
		"a full disk while linking": {
			spoil:  fakeGo("test)", "# example.com/toy\n/go/link: mapping output file failed: no space left on device"),
			wanted: "the disk is full: free some space and run the same command again (/go/link: mapping output file failed",
		},
		"a full disk in a test": {
			spoil: func(t *testing.T, stage *Stage) {
				stage.editTests(t, `t.Errorf("expected %d`, `t.Fatalf("etcd: write wal: no space left on device %d`)
			},
			wanted: "the disk is full: free some space and run the same command again (toy_test.go:",
		},
		"too many open files in a test": {
			spoil: func(t *testing.T, stage *Stage) {
				stage.editTests(t, `t.Errorf("expected %d`, `t.Fatalf("watch the certificates: too many open files %d`)
			},
			wanted: `watch the certificates: too many open files: the system limits`,
		},
		"missing tools in a test": {
			spoil: func(t *testing.T, stage *Stage) {
				stage.editTests(t, `t.Errorf("expected %d`, "t.Fatalf(\"/bin/etcd is missing: run `make tools` in / %d")
			},
			wanted: "the tests can't start a control plane: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage := newToy(t)
			test.spoil(t, stage)
			own := stage.Copy(noMake)
			if err := own.Start(); err != nil {
				t.Fatal(err)
			}
			if err := own.note(own.Steps[0]); err != nil {
				t.Fatal(err)
			}
			finding, err := own.Check(t.Context(), "1.1", func(Step, Ran, bool) {})
			if finding != nil || err == nil || !strings.Contains(err.Error(), test.wanted) {
				t.Errorf("expected an error with %q\nfound %v, and %+v", test.wanted, err, finding)
			}
			if done, err := own.Done(); err != nil || strings.Join(done, " ") != "1.1" {
				t.Errorf("expected step 1.1 to stay done\nfound %v, error %v", done, err)
			}
		})
	}
}

// fakeGo returns a function that makes go print a string and fail if go's first argument matches the pattern. The pattern
// is written as in a shell's case statement, with the closing parenthesis.
func fakeGo(pattern, prints string) func(*testing.T, *Stage) {
	return func(t *testing.T, _ *Stage) {
		real, err := exec.LookPath("go")
		if err != nil {
			t.Fatal(err)
		}
		script := "#!/bin/sh\ncase \"$1\" in\n" + pattern + " cat >&2 <<'END'\n" + prints + "\nEND\nexit 1;;\nesac\nexec '" + real + "' \"$@\"\n"
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// fullDiskVariable is the environment variable that passes the path of a checkout to TestAFullDiskDestroysNothing when
// the test runs in a process that can't write files.
const fullDiskVariable = "EXERCISE_FULL_DISK"

// TestAFullDiskDestroysNothing runs itself again with file sizes limited to zero, which makes each write fail, as on a
// full disk.
func TestAFullDiskDestroysNothing(t *testing.T) {
	if root := os.Getenv(fullDiskVariable); root != "" {
		signal.Ignore(syscall.SIGXFSZ)
		own := toyAt(t, root).Copy(noMake)
		forgotten := own.forget("1.1")
		_, _, solved := own.Solve("1.1")
		if forgotten == nil || solved == nil {
			t.Errorf("no file can be written, but forget returned %v and solve returned %v", forgotten, solved)
		}
		return
	}
	own := started(t)
	for _, step := range own.Steps[:2] {
		if err := own.note(step); err != nil {
			t.Fatal(err)
		}
	}
	own.edit(t, "toy.go", addStub, "\treturn a - b // mine\n")
	again := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 0; exec "$0" -test.run='^TestAFullDiskDestroysNothing$'`, os.Args[0])
	again.Env = append(os.Environ(), fullDiskVariable+"="+own.Root)
	if output, err := again.CombinedOutput(); err != nil {
		t.Errorf("the test on a full disk failed: %v\n%s", err, output)
	}
	if done, err := own.Done(); err != nil || strings.Join(done, " ") != "1.1 1.2a" {
		t.Errorf("expected both steps to stay done\nfound %v, error %v", done, err)
	}
	if toy := own.read(t, "toy.go"); !strings.Contains(toy, "// mine") {
		t.Errorf("the learner's file is lost: %s", toy)
	}
	entries, err := os.ReadDir(own.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".partial") {
			t.Errorf("%s was not removed", entry.Name())
		}
	}
}

func TestFilesAreReplacedAtomically(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := replaceFile(path, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 3)
	if _, err := reader.Read(content); err != nil || string(content) != "old" {
		t.Errorf("expected a reader of the old file to find its content\nfound %q, error %v", content, err)
	}
}

func TestConcurrentChangesLoseNoProgress(t *testing.T) {
	own := started(t)
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			if err := own.append("1.1"); err != nil {
				t.Error(err)
			}
			if err := own.forget("1.2a"); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if done, err := own.Done(); err != nil || len(done) != 20 {
		t.Errorf("the progress has %d of 20 lines, error %v", len(done), err)
	}
}
