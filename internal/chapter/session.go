package chapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// session is the shell that the commands of a chapter seem to be typed into. In truth each command is a shell of its
// own, so that it can be killed whole; what the next one must find is handed on through files in a private directory.
type session struct {
	shell    string // path of a POSIX shell
	dir      string // private directory
	env      []string
	cwd      string
	own      []string // variables that every shell sets for itself
	saved    bool     // the files of an earlier command are there
	plain    []string // variables of the earlier commands that are not exported
	status   int      // $?
	patience patience
	leftover []*process // commands that ended, but left children behind
}

// outputLimit bounds what is kept of a command's output.
const outputLimit = 1 << 20

// refusedVariables can't be set in bash; one that comes with the environment would break the restoring of all.
var refusedVariables = []string{"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS"}

var variableName = regexp.MustCompile(`(?m)^([A-Za-z_][A-Za-z0-9_]*)=`)

// newSession makes a session that starts in cwd, an absolute path.
func newSession(shell, cwd string, env []string, patience patience) (*session, error) {
	dir, err := os.MkdirTemp("", "workshop-play-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the shell's state: %w", err)
	}
	s := &session{shell: shell, dir: dir, cwd: cwd, patience: patience}
	s.env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(refusedVariables, name)
	})
	if err := s.findOwnVariables(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// findOwnVariables lists the variables of a shell without any environment, such as IFS and PS1.
func (s *session) findOwnVariables() error {
	cmd := exec.Command(s.shell, "-c", "set")
	cmd.Env = []string{}
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the variables of %s: %w", s.shell, err)
	}
	for _, match := range variableName.FindAllSubmatch(output, -1) {
		s.own = append(s.own, string(match[1]))
	}
	return nil
}

// close ends what commands left running and removes the session's files.
func (s *session) close() error {
	for _, p := range s.leftover {
		p.stop(patience{interrupt: 0, terminate: s.patience.terminate})
	}
	s.leftover = nil
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the shell's state: %w", err)
	}
	return nil
}

// errTimeLimit is the cause of a command's end when it took too long.
var errTimeLimit = errors.New("time limit")

// run runs a command and returns its output and status. It ends the command when ctx does, or when it takes longer
// than limit; the error is then ctx's or errTimeLimit, and the output what there was so far.
func (s *session) run(ctx context.Context, text string, limit time.Duration, live io.Writer) (*capture, int, error) {
	output := newCapture(outputLimit, live)
	p, err := s.start(text, output, true)
	if err != nil {
		return output, 0, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.drained:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errTimeLimit
	}
	if err != nil {
		p.stop(s.patience)
		output.mute()
		return output, 0, err
	}
	s.status = p.status()
	s.forgetEnded()
	if p.groupLives() {
		s.leftover = append(s.leftover, p)
	}
	return output, s.status, s.load()
}

// forgetEnded drops leftovers that are gone: another program may get the number of their group.
func (s *session) forgetEnded() {
	s.leftover = slices.DeleteFunc(s.leftover, func(p *process) bool { return !p.groupLives() })
}

// start starts a shell that has the session's state and runs text. With save, it leaves its state to the next one.
func (s *session) start(text string, output *capture, save bool) (*process, error) {
	// Without this, the error would say that the shell does not exist.
	if _, err := os.Stat(s.cwd); err != nil {
		return nil, fmt.Errorf("go to the directory of the command before: %w", err)
	}
	if err := s.writeScripts(save); err != nil {
		return nil, fmt.Errorf("write the shell's state: %w", err)
	}
	// The state is restored on the same line, so that the line numbers in the shell's messages are the command's.
	cmd := exec.Command(s.shell, "-c", ". "+quote(s.file("restore"))+"; "+text)
	cmd.Args[0] = "sh"
	cmd.Dir = s.cwd
	cmd.Env = []string{"PWD=" + s.cwd}
	if !s.saved {
		cmd.Env = append(slices.Clone(s.env), cmd.Env...)
	}
	return startProcess(cmd, output)
}

func (s *session) file(name string) string { return filepath.Join(s.dir, name) }

// quote makes a word of the shell that stands for text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// saveScript runs when a command's shell ends. POSIX has no word for "all variables with their values, quoted": so it
// exports them all in a sub-shell, writes what "export -p" prints, and lists those that were not exported before.
// A line within a value can look like a variable to sed; asking for the variable sorts that out.
const saveScript = `set +efuxC
(
  IFS=' 	
'
  cd_known=" @OWN@ _ cd_known cd_name cd_plain "$(command -p env | command -p sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | command -p tr '\n' ' ')
  cd_plain=
  for cd_name in $(set | command -p sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case "$cd_known" in *" $cd_name "*) continue ;; esac
    eval "[ -n \"\${$cd_name+set}\" ]" || continue
    cd_plain="$cd_plain $cd_name"
    export "$cd_name"
  done
  export -p >@DIR@/variables.new
  printf '%s' "$cd_plain" >@DIR@/plain
  pwd >@DIR@/cwd
  echo done >@DIR@/done
)
`

// writeScripts writes what the next shell reads first, and what it runs last.
func (s *session) writeScripts(save bool) error {
	var restore strings.Builder
	if s.saved {
		fmt.Fprintf(&restore, ". %s\n", quote(s.file("variables")))
		// POSIX can't take back an export other than by a new variable.
		for _, name := range s.plain {
			fmt.Fprintf(&restore, "cd_value=$%[1]s; unset %[1]s; %[1]s=$cd_value\n", name)
		}
		restore.WriteString("unset cd_value\n")
	}
	if save {
		fmt.Fprintf(&restore, "trap %s EXIT\n", quote("{ . "+quote(s.file("save"))+"; } 2>/dev/null"))
		script := strings.NewReplacer("@DIR@", quote(s.dir), "@OWN@", strings.Join(s.own, " ")).Replace(saveScript)
		if err := os.WriteFile(s.file("save"), []byte(script), 0o600); err != nil {
			return err
		}
	}
	restore.WriteString("return " + strconv.Itoa(s.status) + "\n")
	return os.WriteFile(s.file("restore"), []byte(restore.String()), 0o600)
}

// load takes over the state that a command left. One that replaced its shell (exec) left none: the old state stays.
func (s *session) load() error {
	if err := os.Remove(s.file("done")); err != nil {
		return nil
	}
	cwd, err := os.ReadFile(s.file("cwd"))
	if err != nil {
		return fmt.Errorf("read the shell's directory: %w", err)
	}
	plain, err := os.ReadFile(s.file("plain"))
	if err != nil {
		return fmt.Errorf("read the shell's variables: %w", err)
	}
	if err := os.Rename(s.file("variables.new"), s.file("variables")); err != nil {
		return fmt.Errorf("keep the shell's variables: %w", err)
	}
	s.cwd = strings.TrimSuffix(string(cwd), "\n")
	s.plain = strings.Fields(string(plain))
	s.saved = true
	return nil
}
