package exercise

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/internal/chapter"
)

func TestLinksOfACopyLeadToTheCheckout(t *testing.T) {
	stage := newToy(t)
	readme := "[chapter](../docs/1-toy.md), [file](toy.go)\n"
	if err := os.WriteFile(filepath.Join(stage.Dir, "README.md"), []byte(readme), 0o644); err != nil {
		t.Fatal(err)
	}
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if want := "[chapter](../../docs/1-toy.md), [file](toy.go)\n"; own.read(t, "README.md") != want {
		t.Errorf("expected %s\nfound %s", want, own.read(t, "README.md"))
	}
}

func TestErrorsAboutACopySayWhatToDo(t *testing.T) {
	stage := newToy(t)
	own := stage.Copy(noMake)
	expect := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("expected an error with %q\nfound %v", text, err)
		}
	}
	_, err := own.CheckStep(t.Context(), "1.1")
	expect(err, "work/01-toy does not exist: `make stage-1 start` creates it")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	expect(own.Start(), "exists already: continue with `make stage-1 check`")
	_, err = own.CheckStep(t.Context(), "1.9")
	expect(err, `stage 1 has no step "1.9": choose from 1.1, 1.2a, 1.2b`)
	_, _, err = own.Solve("1.2")
	expect(err, "section 1.2 has the steps 1.2a and 1.2b: name one, such as STEP=1.2a")
	if err := os.Remove(filepath.Join(own.Path, "go.mod")); err != nil {
		t.Fatal(err)
	}
	_, err = own.CheckStep(t.Context(), "1.1")
	expect(err, "has no go.mod: `make stage-1 reset` makes a new copy, and keeps the old one in work/kept")
	if err := os.RemoveAll(filepath.Join(own.Path, "toy.go")); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Reset(); err != nil {
		t.Error(err)
	}
	empty := &Stage{Stage: stage.Stage, Root: stage.Root}
	expect(empty.Copy(noMake).Start(), "stage 1 has no exercises: ")
}

func TestTheWorkspaceForgetsARemovedCopy(t *testing.T) {
	own := started(t)
	list := filepath.Join(own.Root, "work", "go.work")
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, append(content, "use ./02-removed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Unbuilt {
		t.Errorf("although another stage's folder is gone, expected the code to compile\nfound %+v", finding)
	}
	if now, err := os.ReadFile(list); err != nil || string(now) != string(content) {
		t.Errorf("the workspace must not list a folder that is gone: error %v\n%s", err, now)
	}
}

func TestCommandsOfAChapterUseTheCopy(t *testing.T) {
	own := started(t)
	played, err := chapter.Parse("c.md", []byte("```console\n$ go run ./01-toy && ls work/01-toy\n01-toy/toy.go\n```\n"+
		"## 1.1 A\n```console own=\"ls 01-toy\"\n$ false\n```\n## 1.2 B\n```console own=\"ls 01-toy\"\n$ false\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	own.Replace(played, "1.2")
	if earlier, last := played.Steps[1].Blocks[0].Commands[0].Text, played.Steps[2].Blocks[0].Commands[0].Text; earlier != "false" || last != "ls work/01-toy" {
		t.Errorf("expected only the section that was solved last to run its command for a copy\nfound %q in an earlier section, and %q in that one", earlier, last)
	}
	command := played.Steps[0].Blocks[0].Commands[0]
	if command.Text != "go run ./work/01-toy && ls work/01-toy" || strings.Join(command.Want, "") != "work/01-toy/toy.go" {
		t.Errorf("expected a command that names the stage to name the copy, and its output, too\nfound %q with the output %q", command.Text, command.Want)
	}
	workspace, err := own.WorkspaceInPlace()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "./work/01-toy")
	list.Dir, list.Env = own.Root, append(os.Environ(), "GOWORK="+workspace)
	if output, err := list.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != own.Path {
		t.Errorf("expected go to find the copy in %s\nfound %s, error %v", own.Path, output, err)
	}
}

func TestShareControlPlane(t *testing.T) {
	own := newToy(t).Copy(noMake)
	end, err := own.ShareControlPlane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shared := own.scratch
	if _, err := os.Stat(shared); err != nil {
		t.Error(err)
	}
	again, err := own.ShareControlPlane(t.Context())
	if err != nil || own.scratch != shared {
		t.Errorf("a second call must keep the shared control plane: error %v", err)
	}
	if err := again(); err != nil || own.scratch != shared {
		t.Errorf("only the first caller may end the sharing: error %v", err)
	}
	if err := end(); err != nil || own.scratch != "" {
		t.Errorf("after the first caller's end, no control plane may be shared: error %v", err)
	}
	if _, err := os.Stat(shared); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder must be gone: error %v", err)
	}
}

func TestKeepReportsAFileThatCannotBeRead(t *testing.T) {
	own := started(t)
	path := filepath.Join(own.Path, "toy.go")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := own.keep("test", "toy.go", "missing.go"); err == nil || !strings.HasPrefix(err.Error(), "nothing was changed, because your files could not be kept") {
		t.Errorf("expected an error\nfound %v", err)
	}
}
