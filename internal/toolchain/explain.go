package toolchain

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// causes maps messages of the go command to advice for the learner.
var causes = []struct {
	signs  []string
	remedy string
}{
	{
		signs:  []string{"no space left on device", "disk quota exceeded"},
		remedy: "the disk is full: free some space (the first build needs about 7 GB) and run the same command again, which continues where it stopped",
	},
	{
		signs: []string{"module lookup disabled by GOPROXY=off", "dial tcp", "no such host", "proxyconnect", "i/o timeout",
			"connection refused", "connection reset", "TLS handshake timeout", "network is unreachable"},
		remedy: "Go modules could not be downloaded: connect to the internet (or set GOPROXY to a module proxy that you can reach) and run the same command again, which continues where it stopped",
	},
	{
		signs:  []string{"running go ", "GOTOOLCHAIN="},
		remedy: "this Go is too old: install the version that go.mod asks for",
	},
	{
		signs:  []string{"read-only file system", "permission denied"},
		remedy: "Go cannot write its caches: set GOCACHE and GOMODCACHE to directories that you can write to",
	},
	{
		signs:  []string{"signal: killed"},
		remedy: "a compiler process was killed, most likely for lack of memory: close other programs and run the same command again",
	},
}

// explain returns a one-line error for a failed go command or a full disk, with advice if it knows the cause. It
// searches the text of err, and the command's output or, if that is nil, the standard error that exec.Cmd.Output has
// captured.
func explain(err error, output []byte) error {
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command is not on your PATH: install Go, then run the same command again")
	}
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New(causes[0].remedy)
	}
	if errors.As(err, &exit) && output == nil {
		output = exit.Stderr
	}
	text := string(output) + " " + err.Error()
	for _, cause := range causes {
		for _, sign := range cause.signs {
			if strings.Contains(text, sign) {
				return fmt.Errorf("%s (go says: %s)", cause.remedy, lineWith(text, sign))
			}
		}
	}
	if line := firstLine(string(output)); line != "" {
		return errors.New(line)
	}
	return err
}

func lineWith(text, sign string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, sign) {
			return strings.TrimSpace(line)
		}
	}
	return sign
}

// firstLine returns the first line that is neither empty nor one of the compiler's headings, such as "# path".
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "# ") {
			return line
		}
	}
	return ""
}
