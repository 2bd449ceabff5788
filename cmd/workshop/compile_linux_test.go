package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// compileBench returns a shell command that runs a program with tools/compile.sh. The program runs until the file stop
// exists, and then exits with status 7. The script's sleep is a fake: instead of waiting, it creates the file slept.
func compileBench(t *testing.T) (command, stop, slept string) {
	t.Helper()
	g := NewWithT(t)
	r, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	stop, slept = filepath.Join(dir, "stop"), filepath.Join(dir, "slept")
	scripts := map[string]string{
		"sleep": "touch " + slept,
		"slow":  "until [ -e " + stop + " ]; do /bin/sleep 0.01; done; exit 7",
	}
	for name, script := range scripts {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)).To(Succeed())
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return fmt.Sprintf("'%s' 'the operator' slow", filepath.Join(r.Root, "tools", "compile.sh")), stop, slept
}

func TestALongCompilationSaysWhatIsCompiled(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("this machine has no script command, which gives a program a terminal")
	}
	g := NewWithT(t)
	command, stop, _ := compileBench(t)
	terminal := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--command", command, "/dev/null")
	out, err := terminal.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(terminal.Start()).To(Succeed())
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	g.Eventually(line).WithTimeout(time.Minute).Should(Receive(Equal("Compiling the operator (the first time takes a few minutes)…")))
	g.Expect(os.WriteFile(stop, nil, 0o600)).To(Succeed())
	g.Expect(terminal.Wait()).NotTo(Succeed())
	g.Expect(terminal.ProcessState.ExitCode()).To(Equal(7), "the status must be the command's own")
}

func TestCompilingWithoutATerminalPrintsNothing(t *testing.T) {
	g := NewWithT(t)
	command, stop, slept := compileBench(t)
	g.Expect(os.WriteFile(stop, nil, 0o600)).To(Succeed())
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	out, _ := shell.CombinedOutput()
	g.Expect(string(out)).To(BeEmpty())
	g.Expect(shell.ProcessState.ExitCode()).To(Equal(7), "the status must be the command's own")
	g.Expect(slept).NotTo(BeAnExistingFile())
}
