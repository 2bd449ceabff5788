package subshell_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/subshell"
)

// TestThePromptHasAMark uses interactive shells, which print their prompts to standard error.
func TestThePromptHasAMark(t *testing.T) {
	cases := map[string]struct {
		shell string
		// files are the learner's start-up files, by their paths below the home directory.
		files map[string]string
		// settings are additional variables in the learner's environment. A value that begins with HOME/ is a
		// path below the home directory.
		settings []string
		input    string
		prompt   string
		output   string
	}{
		"bash without a .bashrc": {
			shell: "bash", input: "PS1=changed\n", prompt: "(workshop) changed",
		},
		"bash with a prompt of its own": {
			shell: "bash", files: map[string]string{".bashrc": "PS1='mine> '\nread=yes\n"},
			input: "echo $read\n", prompt: "(workshop) mine> ", output: "yes\n",
		},
		"bash with a prompt that PROMPT_COMMAND sets": {
			shell: "bash", files: map[string]string{".bashrc": "PROMPT_COMMAND='PS1=\"[$?] \";'\n"},
			input: "false\n", prompt: "(workshop) [1] ",
		},
		"sh": {
			shell: "sh", input: "echo ${ENV-none}\n", prompt: "(workshop) ", output: "none\n",
		},
		"sh with a start-up file": {
			shell: "sh", files: map[string]string{"it's.sh": "PS1='mine> '; read=yes\n"}, settings: []string{"ENV=$HOME/it's.sh"},
			input: "echo $read $ENV\n", prompt: "(workshop) mine> ", output: "yes $HOME/it's.sh\n",
		},
		"sh with a start-up file that is gone": {
			shell: "sh", settings: []string{"ENV=/nowhere/file"}, input: "echo on\n", prompt: "(workshop) ", output: "on\n",
		},
		"zsh": {
			shell: "zsh", files: map[string]string{".zshenv": "first=yes\n", ".zshrc": "PS1='mine> '\n"},
			input: "echo $first ${ZDOTDIR-none}\n", prompt: "(workshop) mine> ", output: "yes none\n",
		},
		"zsh with ZDOTDIR set": {
			shell: "zsh", files: map[string]string{"own dir/.zshrc": "PS1='mine> '\n"}, settings: []string{"ZDOTDIR=HOME/own dir"},
			input: "echo ${ZDOTDIR##*/}\n", prompt: "(workshop) mine> ", output: "own dir\n",
		},
		"zsh with commands that are written for bash": {
			shell: "zsh", input: "list='a b'\nprintf '[%s]' $list owners[0] !x # and no more\n", prompt: "(workshop) ", output: "[a][b][owners[0]][!x]",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shell, err := exec.LookPath(c.shell)
			if err != nil {
				t.Skip("this machine has no " + c.shell)
			}
			g := NewWithT(t)
			home, temporary := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", temporary)
			for name, content := range c.files {
				path := filepath.Join(home, name)
				g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
				g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
			}
			environment := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			for _, setting := range c.settings {
				environment = append(environment, strings.Replace(setting, "=HOME/", "="+home+"/", 1))
			}
			command, remove := subshell.Command(shell, environment)
			expectPrivate(g, temporary)
			command.Args = append(command.Args, "-i")
			// In a session of its own, the shell has no terminal, and leaves the test's terminal alone.
			command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			var stdout, stderr bytes.Buffer
			command.Stdin, command.Stdout, command.Stderr = strings.NewReader(c.input+"exit 0\n"), &stdout, &stderr
			g.Expect(command.Run()).To(Succeed())
			g.Expect(stderr.String()).To(ContainSubstring(c.prompt))
			g.Expect(stderr.String()).NotTo(ContainSubstring("(workshop) (workshop)"))
			g.Expect(stdout.String()).To(Equal(c.output))
			remove()
			g.Expect(os.ReadDir(temporary)).To(BeEmpty())
		})
	}
}

// expectPrivate expects the folder to have one entry, which only its owner can read or change.
func expectPrivate(g Gomega, folder string) {
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(1))
	info, err := entries[0].Info()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
}

func TestAnUnknownShellStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	command, remove := subshell.Command("/usr/bin/fish", []string{"A=b"})
	defer remove()
	g.Expect(command.Args).To(Equal([]string{"/usr/bin/fish"}))
	g.Expect(command.Env).To(Equal([]string{"A=b"}))
}

func TestAMarkThatCannotBeAddedIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	command, remove := subshell.Command("/bin/bash", nil)
	remove()
	g.Expect(command.Args).To(Equal([]string{"/bin/bash"}))
}
