package play

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/providers"
)

// testPlayer returns a player that plays in an empty directory, shows the play in a buffer, and sends SIGTERM soon
// after SIGINT.
func testPlayer(t *testing.T) *Player {
	return &Player{
		Dir:   t.TempDir(),
		Env:   []string{"PATH=" + os.Getenv("PATH"), "UID=1000"}, // UID can't be set in bash
		Out:   &bytes.Buffer{},
		grace: gracePeriods{interrupt: 100 * time.Millisecond, terminate: 5 * time.Second},
	}
}

// consoleFence wraps lines in a console fence with these words.
func consoleFence(words string, lines ...string) string {
	return strings.Join(append([]string{"```console" + words}, append(lines, "```\n")...), "\n")
}

func parse(g Gomega, text string) *chapter.Chapter {
	parsed, err := chapter.Parse("c.md", []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// shellScripts are commands with their output, as if typed one after the other. TestPlayIsLikeOneShell plays them in
// each of its shells.
var shellScripts = map[string][]string{
	"the directory carries over":                {"$ mkdir -p 'a b/c'", "$ cd 'a b'", "$ cd c", "$ pwd", "[..]/a b/c", "$ cd - >/dev/null", "$ pwd", "[..]/a b"},
	"an exported variable carries over":         {"$ export A=1", "$ echo $A", "1", "$ sh -c 'echo $A'", "1"},
	"a plain variable carries over unexported":  {"$ A=1", "$ echo [$A]", "[1]", "$ sh -c 'echo [$A]'", "[]", "$ export A", "$ sh -c 'echo [$A]'", "[1]", "$ A=2", "$ sh -c 'echo [$A]'", "[2]"},
	"an unset variable stays unset":             {"$ export A=1; B=2", "$ unset A B", "$ echo ${A-none} ${B-none}", "none none"},
	"an empty variable stays set":               {"$ A=; export B=", "$ echo ${A-none}${B-none}.", "."},
	"newlines and quotes survive in a variable": {`$ A=$(printf 'a  "b" %s\n\n$HOME \\ ` + "`x`" + `=* \tB=1' "it's")`, "$ export A", "$ :", `$ printf '%s.\n' "$A"`, `a  "b" it's`, "[..]", "$HOME \\ `x`=* \tB=1."},
	"newlines survive in a plain variable":      {`$ A=$(printf 'a\nB=1\n"C"=2')`, "$ :", `$ echo "$A"; echo ${B-none}`, "a", "B=1", `"C"=2`, "none"},
	"the status carries over":                   {"$ (exit 4)", "? 4", "$ echo $?", "4", "$ echo $?", "0"},
	"a command that exits":                      {"$ A=1; exit 3", "? 3", "$ echo $A", "1"},
	"a command that replaces the shell":         {"$ A=1", "$ A=2; exec echo hi", "hi", "$ echo $A", "1"},
	"a readonly variable does no harm":          {"$ readonly A=1", "$ echo $A", "1", "$ B=2", "$ echo $A$B", "12"},
	"shell options do not spoil the state":      {"$ :", "$ set -eufC; A=1; export B=2; false", "? 1", "$ set -x; C=3", "+ C=3", "$ echo $A$B$C *", "123 *"},
	"IFS and PATH do not spoil the state":       {"$ IFS=AB; P=$PATH; PATH=/none; A=1; B=2", "$ PATH=$P; echo $A$B", "12"},
	"a heredoc":                                 {"$ cat <<EOF", "a", "", "$ b", "EOF", "a", "[..]", "[..]b"},
	"a heredoc before a command":                {"$ cat <<EOF", "a", "EOF", "a", "$ echo b # comment", "b", "$ # comment"},
	"a continued line":                          {`$ echo a \`, "> b \\", "  c", "a b c"},
	"output and errors in order":                {"$ echo a >&2; echo b; echo c >&2; echo d", "a", "b", "c", "d"},
	"nothing on the input":                      {"$ cat; read A", "? 1"},
	"a message with a line of the command":      {"$ nosuch", "[..]1: nosuch:[..]not found", "? 127"},
	"a child in the background":                 {"$ sleep 100 & A=$!; echo a", "a", "$ kill -0 $A && echo b", "b"},
	"a syntax error":                            {"$ A=1", "$ eval '('", "...", "? 2", "$ echo $A", "1"},
	"a death by a signal":                       {"$ kill -9 $$", "? 137"},
	"colours are not compared":                  {`$ printf '\033[1ma\033[0m\n\n'`, "a"},
}

func TestPlayIsLikeOneShell(t *testing.T) {
	shells := map[string]string{"sh": posixShell}
	if bash, err := exec.LookPath("bash"); err == nil {
		// On macOS, /bin/sh is bash, which follows POSIX when it is called sh.
		link := filepath.Join(t.TempDir(), "sh")
		NewWithT(t).Expect(os.Symlink(bash, link)).To(Succeed())
		shells["bash as sh"] = link
	}
	for shellName, shell := range shells {
		for name, script := range shellScripts {
			t.Run(shellName+": "+name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				player := testPlayer(t)
				player.shell = shell
				play, err := player.begin(parse(g, consoleFence("", script...)))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(play.steps(t.Context())).To(Succeed())
				g.Expect(play.end()).To(Succeed())
				g.Expect(play.session.dir).NotTo(BeADirectory())
			})
		}
	}
}

func TestLenientPlayContinuesAfterDifferentOutput(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	var differences []*Failure
	player.Differs = func(difference *Failure) { differences = append(differences, difference) }
	g.Expect(player.Play(t.Context(), parse(g, "## 1.1 A\n### More\n"+consoleFence("", "$ echo a", "b", "$ echo c", "c")))).To(Succeed())
	g.Expect(differences).To(HaveExactElements(&Failure{
		Place: "c.md:4", Step: "1.1", Text: "the output differs, first in the lines marked with >\n    $ echo a\nwant:\n  > b\ngot:\n  > a",
	}))
	g.Expect(player.Out.(*bytes.Buffer).String()).To(ContainSubstring("2 commands, 1 with different output, "))
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ false", "b")))
	g.Expect(err).To(MatchError(ContainSubstring("exit status 1, want 0")))
	failure, found := errors.AsType[*Failure](err)
	g.Expect(found).To(BeTrue())
	g.Expect(failure.Place).To(Equal("c.md:2"))
}

func TestAFailureIsExplainedBeforeTheCleanup(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	player.Explain = func(context.Context) string {
		g.Expect(filepath.Join(player.Dir, "cleaned")).NotTo(BeAnExistingFile())
		return "an image is missing"
	}
	cleanup := consoleFence(" cleanup", "$ touch cleaned")
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ false")+cleanup))
	g.Expect(err).To(MatchError("c.md:2: exit status 1, want 0\n    $ false\noutput: nothing\nan image is missing"))
	g.Expect(filepath.Join(player.Dir, "cleaned")).To(BeAnExistingFile())
	g.Expect(os.Remove(filepath.Join(player.Dir, "cleaned"))).To(Succeed())
	player.Explain = func(context.Context) string { panic("nothing has failed") }
	g.Expect(player.Play(t.Context(), parse(g, consoleFence("", "$ true")+cleanup))).To(Succeed())
}

func TestPlayStopsAtADifference(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"wrong output": {
			consoleFence("", "$ printf 'a\\nx\\n\\nc\\n'", "a", "b", "..."),
			"c.md:2: the output differs, first in the lines marked with >\n    $ printf 'a\\nx\\n\\nc\\n'\nwant:\n    a\n  > b\n    ...\ngot:\n    a\n  > x\n\n    c",
		},
		"missing output": {
			consoleFence("", "$ echo a", "a", "b"),
			"c.md:2: the output differs, first in the lines marked with >\n    $ echo a\nwant:\n    a\n  > b\ngot:\n    a\n  > (no more lines)",
		},
		"extra output": {
			consoleFence("", "$ :", "$ echo a", "a", "$ echo a \\", "  && echo b", "a"),
			"c.md:5: the output differs, first in the lines marked with >\n    $ echo a \\\n      && echo b\nwant:\n    a\n  > (no more lines)\ngot:\n    a\n  > b",
		},
		"output where none is written": {
			consoleFence("", "$ echo a"),
			"c.md:2: the output differs, first in the lines marked with >\n    $ echo a\nwant:\n  > (no more lines)\ngot:\n  > a",
		},
		"a wrong exit status": {
			consoleFence("", "$ echo a; exit 3", "b", "? 4"),
			"c.md:2: exit status 3, want 4\n    $ echo a; exit 3\noutput:\n    a",
		},
		"an exit status where none is written": {
			consoleFence("", "$ false"),
			"c.md:2: exit status 1, want 0\n    $ false\noutput: nothing",
		},
		"success where an error is expected": {
			consoleFence(" expect=error", "$ false", "$ echo a"),
			"c.md:3: exit status 0, want an error\n    $ echo a\noutput:\n    a",
		},
		"too much output": {
			consoleFence("", "$ head -c 1048577 /dev/zero", "..."),
			"c.md:2: more than 1048576 bytes of output\n    $ head -c 1048577 /dev/zero",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			err := testPlayer(t).Play(t.Context(), parse(g, test.text))
			g.Expect(err).To(MatchError(test.want))
		})
	}
}

func TestPlayNamesADirectoryThatIsGone(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ mkdir a && cd a && rmdir ../a", "$ :")))
	g.Expect(err).To(MatchError(HavePrefix("c.md:3: go to the previous command's directory: stat " + player.Dir + "/a: no such file")))
}

func TestPlayCountsStepsCommandsAndSkippedBlocks(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	player.Quiet = true
	err := player.Play(t.Context(), parse(g, "# Title\n## 1.1 A\n"+consoleFence("", "$ :", "$ :")+"## 1.2 B\n"+
		consoleFence(" cluster=kind background=op ready=a", "$ false")+consoleFence(" cluster=kind,current", "$ false")+
		"## 1.3 C\n"+consoleFence(" stop=op cluster=embedded", "$ :")+consoleFence(" cluster=kind", "$ false")))
	g.Expect(err).NotTo(HaveOccurred())
	output := player.Out.(*bytes.Buffer).String()
	g.Expect(strings.Split(output, "\n")).To(HaveExactElements(
		MatchRegexp(`^ok    1\.1 A \(2 commands, \d+\.\d s\)$`),
		Equal("skip  1.2 B (needs kind)"),
		MatchRegexp(`^ok    1\.3 C \(1 command, \d+\.\d s\)$`),
		MatchRegexp(`^played c\.md: 2 steps, 3 commands, 3 blocks skipped \(need kind, kind or current\), \d+\.\d s$`),
		BeEmpty(),
	))
}

func TestPlaySkipsBlocksForOtherClusters(t *testing.T) {
	for cluster, want := range map[string]int{"": 1, providers.Embedded: 1, providers.Kind: 2, providers.Current: 1} {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			player := testPlayer(t)
			player.Cluster = cluster
			text := consoleFence(" cluster=kind", "$ :") + consoleFence(" cluster=kind,current", "$ :") + consoleFence(" cluster=embedded", "$ :")
			g.Expect(player.Play(context.Background(), parse(g, text))).To(Succeed())
			g.Expect(player.Out.(*bytes.Buffer).String()).To(MatchRegexp(`played c\.md: 1 step, %d commands?, %d blocks? skipped `, want, 3-want))
		})
	}
}

func TestPlayFromAStepIsQuietBeforeIt(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	input, key := io.Pipe()
	player.From, player.In = "1.2", input
	result := make(chan error, 1)
	parsed := parse(g, "# Title\n## 1.1 A\n"+consoleFence("", "$ A=1; touch a")+"## 1.2 B\n"+consoleFence("", "$ echo $A", "1")+
		"## 1.3 C\n"+consoleFence("", "$ echo $A", "1"))
	go func() { result <- player.Play(t.Context(), parsed) }()
	for range 2 {
		// Writing a key to the pipe blocks until the player reads it, which it does only for commands that are shown.
		g.Consistently(result, "20ms", "5ms").ShouldNot(Receive())
		_, err := key.Write([]byte("\n"))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(result, "10s", "5ms").Should(Receive(BeNil()))
	g.Expect(player.Out.(*bytes.Buffer).String()).To(MatchRegexp(
		`^ok    1\.1 A \(1 command, \d+\.\d s\)\n\n1\.2 B\n\$ echo \$A\n1\n\n1\.3 C\n\$ echo \$A\n1\nplayed c\.md: 3 steps, 3 commands, \d+\.\d s\n$`))
}

func TestPlayBeforeAStepCleansUpAfterwards(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	player.Before = "1.2"
	g.Expect(player.Play(t.Context(), parse(g, "# Title\n## 1.1 A\n"+consoleFence("", "$ touch a")+
		"## 1.2 B\n"+consoleFence("", "$ false")+"## 1.3 C\n"+consoleFence(" cleanup", "$ rm a")))).To(Succeed())
	g.Expect(player.Out.(*bytes.Buffer).String()).To(MatchRegexp(
		`1\.1 A\n\$ touch a\ncleaning up: rm a\nplayed c\.md: 1 step, 1 command, \d+\.\d s\n$`))
	g.Expect(filepath.Join(player.Dir, "a")).NotTo(BeAnExistingFile())
}

func TestPlayFromAStepComparesTheStepsBeforeIt(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	player.From = "1.2"
	err := player.Play(t.Context(), parse(g, "## 1.1 A\n"+consoleFence("", "$ echo a", "b")+"## 1.2 B\n"+consoleFence("", "$ :")))
	g.Expect(err).To(MatchError(HavePrefix("c.md:3: the output differs")))
	g.Expect(player.Out.(*bytes.Buffer).String()).To(MatchRegexp(`^FAIL  1\.1 A \(1 command, \d+\.\d s\)\n$`))
}
