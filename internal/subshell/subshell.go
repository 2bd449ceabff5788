// Package subshell prepares shells whose prompt begins with a mark, so that learners see which terminal uses the
// classroom cluster. Each shell still reads the learner's own start-up files before it adds the mark.
package subshell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mark defines a shell function that puts the mark in front of the prompt, unless it is already there.
const mark = `workshop_mark() { case $PS1 in "(workshop) "*) ;; *) PS1="(workshop) $PS1" ;; esac; }
`

// bashStart is the file for bash --rcfile, which bash reads instead of ~/.bashrc. The learner's own PROMPT_COMMAND may
// change the prompt each time, so the mark is added after it has run.
const bashStart = mark + `[ ! -r ~/.bashrc ] || . ~/.bashrc
PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND
}workshop_mark"
`

// zshStart is a .zshenv, the first of a user's files that zsh reads. It restores ZDOTDIR, so that zsh then reads the
// learner's own files. zsh calls the functions in precmd_functions before each prompt. With the options that
// workshop_options sets, zsh reads the chapters' commands as bash does: [ and ! may be unquoted, variables are split
// into words, and # begins a comment.
const zshStart = mark + `workshop_options() { setopt no_nomatch no_bang_hist sh_word_split interactive_comments; }
%s
[ ! -r "${ZDOTDIR:-$HOME}/.zshenv" ] || . "${ZDOTDIR:-$HOME}/.zshenv"
precmd_functions+=(workshop_mark workshop_options)
`

// shStart is the file that ENV names, which an interactive POSIX shell reads. The learner's own ENV may contain
// variables, hence the eval.
const shStart = mark + `%s
[ -z "${ENV-}" ] || eval "[ ! -r \"$ENV\" ] || . \"$ENV\""
workshop_mark
`

// Command returns the command that starts an interactive shell with this environment. Call remove when the shell has
// ended. If the mark can't be added, for example because the shell is unknown, the prompt stays as it is.
func Command(shell string, environment []string) (command *exec.Cmd, remove func()) {
	command = exec.Command(shell)
	command.Env = environment
	dir, err := os.MkdirTemp("", "workshop-shell-") // only its owner can enter it
	if err != nil {
		return command, func() {}
	}
	write := func(name, content string) bool {
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) == nil
	}
	switch filepath.Base(shell) {
	case "bash":
		if write("bashrc", bashStart) {
			command.Args = append(command.Args, "--rcfile", filepath.Join(dir, "bashrc"))
		}
	case "zsh":
		if write(".zshenv", fmt.Sprintf(zshStart, restore("ZDOTDIR", environment))) {
			command.Env = append(command.Env, "ZDOTDIR="+dir)
		}
	case "sh", "dash", "ash", "ksh":
		if write("env", fmt.Sprintf(shStart, restore("ENV", environment))) {
			command.Env = append(command.Env, "ENV="+filepath.Join(dir, "env"))
		}
	}
	return command, func() { _ = os.RemoveAll(dir) }
}

// restore returns the shell command that sets a variable to its value in the environment, or unsets it if it has none.
func restore(name string, environment []string) string {
	command := "unset " + name
	for _, setting := range environment {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			command = name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	return command
}
