package play

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const shown = "# Title\n\nProse.\n\n## 1.1 Colours\n\n```console\n$ printf '\\033[1ma\\033[0m\\nb'\na\nb\n$ cat <<EOF\n\nEOF\n...\n```\n"

func TestTheScreen(t *testing.T) {
	const plain = "\nTitle\n\n1.1 Colours\n$ printf '\\033[1ma\\033[0m\\nb'\na\nb\n$ cat <<EOF\n\nEOF\n\n"
	const coloured = "\nTitle\n\n1.1 Colours\n$ printf '\\033[1ma\\033[0m\\nb'\n\x1b[1ma\x1b[0m\nb\n$ cat <<EOF\n\nEOF\n\n"
	boldTitles := strings.NewReplacer("Title", "\x1b[1mTitle\x1b[0m", "1.1 Colours", "\x1b[1m1.1 Colours\x1b[0m")
	tests := map[string]struct {
		typing bool
		env    string
		input  io.Reader
		want   string
	}{
		"is plain if it is not a terminal": {want: plain},
		"is bold on a terminal":            {typing: true, want: boldTitles.Replace(coloured)},
		"is not bold with NO_COLOR":        {typing: true, env: "NO_COLOR=1", want: coloured},
		"is bold with an empty NO_COLOR":   {typing: true, env: "NO_COLOR=", want: boldTitles.Replace(coloured)},
		"waits for Enter":                  {input: strings.NewReader("\n\n"), want: plain},
		// The terminal itself echoes Enter, which ends the line.
		"leaves the line to Enter": {typing: true, input: strings.NewReader("\n\n"), want: boldTitles.Replace(
			strings.NewReplacer("\\nb'\n", "\\nb'", "\nEOF\n\n", "\nEOF\n").Replace(coloured))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			player := testPlayer(t)
			player.Typing, player.typingDelay = test.typing, time.Nanosecond
			player.Env = append(player.Env, test.env)
			player.In = test.input
			err := player.Play(t.Context(), parse(g, shown))
			g.Expect(err).NotTo(HaveOccurred())
			played, summary, found := strings.Cut(player.Out.(*bytes.Buffer).String(), "played c.md: ")
			g.Expect(found).To(BeTrue())
			g.Expect(played).To(Equal(test.want))
			g.Expect(summary).To(HavePrefix("1 step, 2 commands, "))
		})
	}
}

func TestQuietShowsAFailedStep(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	player.Quiet = true
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ :")+"## 1.1 A\n"+consoleFence("", "$ false", "$ :")))
	g.Expect(err).To(HaveOccurred())
	g.Expect(player.Out.(*bytes.Buffer).String()).To(MatchRegexp(
		`^ok    \(before the first heading\) \(1 command, \d+\.\d s\)\nFAIL  1\.1 A \(1 command, \d+\.\d s\)\n$`))
}

func TestEnterIsAwaited(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	input, key := io.Pipe()
	player.In = input
	result := make(chan error, 1)
	parsed := parse(g, consoleFence("", "$ touch one", "$ touch two"))
	go func() {
		err := player.Play(t.Context(), parsed)
		result <- err
	}()
	for range 2 {
		// Writing the key to the pipe blocks until the player reads it.
		g.Consistently(result, "20ms", "5ms").ShouldNot(Receive())
		_, err := key.Write([]byte("\n"))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(result, "10s", "5ms").Should(Receive(BeNil()))
}

func TestTheEndOfTheInputStopsThePlay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	player.In = strings.NewReader("\n")
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ touch one", "$ touch two")+consoleFence(" cleanup", "$ touch removed")))
	g.Expect(err).To(MatchError(And(ContainSubstring("stopped: expected Enter, but the input ended"), ContainSubstring("$ touch two"))))
	g.Expect(filepath.Join(player.Dir, "one")).To(BeAnExistingFile())
	g.Expect(filepath.Join(player.Dir, "two")).NotTo(BeAnExistingFile())
	g.Expect(filepath.Join(player.Dir, "removed")).To(BeAnExistingFile(), "the cleanup must have run")
}

func TestTypingIsInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := &bytes.Buffer{}
	typist := &screen{out: out, typing: true, delay: time.Hour}
	typist.command(ctx, "x")
	g.Expect(out.String()).To(Equal("$ "))
}
