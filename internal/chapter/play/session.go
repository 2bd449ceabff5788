package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/quote"
)

// session is the shell that the commands of a chapter seem to be typed into. In fact, each command runs in its own
// shell, so that it can be killed with its children. Files in a private directory pass the shell's state on to the next
// command's shell.
type session struct {
	shell    string // path of a POSIX shell
	dir      string // private directory
	env      []string
	cwd      string
	saved    bool // whether an earlier command has left its state
	status   int  // $?
	grace    gracePeriods
	leftover []*process // commands that ended, but left children behind
}

// outputLimit bounds how many bytes of a command's output are kept.
const outputLimit = 1 << 20

// refusedVariables can't be set in bash. If the environment contained one, restoring the variables would fail.
var refusedVariables = []string{"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS"}

// newSession makes a session that starts in cwd, an absolute path.
func newSession(shell, cwd string, env []string, grace gracePeriods) (*session, error) {
	dir, err := os.MkdirTemp("", "workshop-play-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the shell's state: %w", err)
	}
	s := &session{shell: shell, dir: dir, cwd: cwd, grace: grace}
	s.env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(refusedVariables, name)
	})
	script := strings.NewReplacer("@DIR@", quote.Word(dir), "@SHELL@", quote.Word(shell)).Replace(saveScript)
	if err := os.WriteFile(s.file("save"), []byte(script), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write the script that saves the shell's state: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// saveScript runs when the shell of a foreground command exits. It writes the shell's working directory to one file,
// and to another a script that restores the shell's variables. The output of set would contain variables that a shell
// refuses to set, so saveScript exports the variables and writes the output of export -p, followed by lines that undo
// the exports it added. A POSIX shell can undo an export only by unsetting the variable and setting it again.
// saveScript does not export variables that even a shell without an environment has, such as IFS and PS1. A line within
// a value can look like a variable to sed, so saveScript checks that the variable is set.
const saveScript = `set +efuxC
(
  IFS=' 	
'
  cd_known=" _ cd_known cd_name "$({ command -p env; command -p env -i @SHELL@ -c set; } | command -p sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | command -p tr '\n' ' ')
  for cd_name in $(set | command -p sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case "$cd_known" in *" $cd_name "*) continue ;; esac
    eval "[ -n \"\${$cd_name+set}\" ]" || continue
    export "$cd_name"
    echo "cd_value=\$$cd_name; unset $cd_name; $cd_name=\$cd_value; unset cd_value"
  done >@DIR@/plain
  { export -p; command -p cat @DIR@/plain; } >@DIR@/variables
  pwd >@DIR@/cwd
  command -p mv @DIR@/variables @DIR@/state.new
)
`

// close stops the processes that commands left running, and removes the session's files.
func (s *session) close() error {
	for _, p := range s.leftover {
		p.stop(gracePeriods{interrupt: 0, terminate: s.grace.terminate})
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the shell's state: %w", err)
	}
	return nil
}

// errTimeLimit is the error for a command that took too long.
var errTimeLimit = errors.New("time limit")

// run runs a command and returns its output and status. It ends the command when ctx ends or the command takes longer
// than limit. The error is then ctx's or errTimeLimit, and the output is what the command had printed until then.
func (s *session) run(ctx context.Context, text string, limit time.Duration, live io.Writer) (*capture, int, error) {
	output := newCapture(outputLimit, live)
	p, err := s.start(text, output, true)
	if err != nil {
		return output, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeLimit)
	defer cancel()
	select {
	case <-p.drained:
	case <-ctx.Done():
		p.stop(s.grace)
		output.mute()
		return output, 0, context.Cause(ctx)
	}
	s.status = p.status()
	// Forget leftovers that are gone, because another process group may get their ID.
	s.leftover = slices.DeleteFunc(append(s.leftover, p), func(p *process) bool { return !p.groupLives() })
	return output, s.status, s.load()
}

// start starts a shell that has the session's state and runs text. With save, the shell saves its state for the next one.
func (s *session) start(text string, output *capture, save bool) (*process, error) {
	// Without this check, the error would say that the shell does not exist.
	if _, err := os.Stat(s.cwd); err != nil {
		return nil, fmt.Errorf("go to the previous command's directory: %w", err)
	}
	env := []string{"PWD=" + s.cwd}
	restore := fmt.Sprintf("(exit %d); ", s.status)
	if save {
		restore = "trap " + quote.Word("{ . "+quote.Word(s.file("save"))+"; } 2>/dev/null") + " EXIT; " + restore
	}
	if s.saved {
		restore = ". " + quote.Word(s.file("state")) + "; " + restore
	} else {
		env = append(slices.Clone(s.env), env...)
	}
	// Restore the state on the command's first line, so that the line numbers in the shell's messages are those of the
	// command.
	cmd := exec.Command(s.shell, "-c", restore+text)
	cmd.Args[0] = "sh"
	cmd.Dir = s.cwd
	cmd.Env = env
	return startProcess(cmd, output)
}

func (s *session) file(name string) string { return filepath.Join(s.dir, name) }

// load takes over the state that a command's shell has saved. If the shell has saved nothing, for example because the
// command replaced it with exec or a signal killed it, the old state stays.
func (s *session) load() error {
	err := os.Rename(s.file("state.new"), s.file("state"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep the shell's variables: %w", err)
	}
	cwd, err := os.ReadFile(s.file("cwd"))
	if err != nil {
		return fmt.Errorf("read the shell's directory: %w", err)
	}
	s.cwd = strings.TrimSuffix(string(cwd), "\n")
	s.saved = true
	return nil
}
