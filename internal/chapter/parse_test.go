package chapter

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// consoleFence wraps lines in a console fence with these words.
func consoleFence(words string, lines ...string) string {
	return strings.Join(append([]string{"```console" + words}, append(lines, "```\n")...), "\n")
}

func TestParseReadsTheGrammar(t *testing.T) {
	five := Command{Line: 2, Text: "true", Exit: 5}
	tests := map[string]struct {
		text string
		want []Block
	}{
		"a command with output and status": {
			consoleFence("", "$ true", "a  ", "[..]", "? 5"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: "true", Want: []string{"a", "[..]"}, Exit: 5}}}},
		},
		"commands one after the other": {
			consoleFence("", "$ a", "$ b", "out", "$ c"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: "a"}, {Line: 3, Text: "b", Want: []string{"out"}}, {Line: 5, Text: "c"}}}},
		},
		"lines continued with and without a prompt": {
			consoleFence("", `$ a \`, `  b \`, "> c", "out"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: "a \\\n  b \\\nc", Want: []string{"out"}}}}},
		},
		"an escaped backslash at the end does not continue": {
			consoleFence("", `$ a \\`, "out"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: `a \\`, Want: []string{"out"}}}}},
		},
		"a heredoc with blank lines and prompts in it": {
			consoleFence("", "$ cat <<EOF", "", "$ a", "? 1", "...", "EOF", "out"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: "cat <<EOF\n\n$ a\n? 1\n...\nEOF", Want: []string{"out"}}}}},
		},
		"two heredocs of one command": {
			consoleFence("", `$ cat <<-'A'; cat << \B`, "\tA B", "\tA", "\tB", "B", "out"),
			[]Block{{Line: 1, Commands: []Command{{Line: 2, Text: "cat <<-'A'; cat << \\B\n\tA B\n\tA\n\tB\nB", Want: []string{"out"}}}}},
		},
		"every word": {
			consoleFence(` expect=error timeout=3s cluster=kind,current cleanup`, "$ true", "$ true", "? 5"),
			[]Block{{Line: 1, ExpectError: true, Timeout: 3 * time.Second, Clusters: []string{"kind", "current"}, Cleanup: true,
				Commands: []Command{{Line: 2, Text: "true", Exit: AnyError}, {Line: 3, Text: "true", Exit: 5}}}},
		},
		"another command for a learner's copy": {
			consoleFence(` own="kubectl apply -f a"`, "$ true"),
			[]Block{{Line: 1, Own: "kubectl apply -f a", Commands: []Command{{Line: 2, Text: "true"}}}},
		},
		"what a chapter makes": {
			consoleFence(` cleanup makes="crd/*.example.com  namespace/a"`, "$ true"),
			[]Block{{Line: 1, Cleanup: true, Makes: []string{"crd/*.example.com", "namespace/a"}, Commands: []Command{{Line: 2, Text: "true"}}}},
		},
		"a background process that is stopped and replaced": {
			consoleFence(` background=op ready="is up"`, "$ a") + consoleFence(` stop=op background=op ready=up`, "$ b") + consoleFence(` stop=op`),
			[]Block{
				{Line: 1, Background: "op", Ready: "is up", Commands: []Command{{Line: 2, Text: "a"}}},
				{Line: 4, Stop: "op", Background: "op", Ready: "up", Commands: []Command{{Line: 5, Text: "b"}}},
				{Line: 7, Stop: "op"},
			},
		},
		"CRLF line ends":                 {"```console\r\n$ true\r\n? 5\r\n```\r\n", []Block{{Line: 1, Commands: []Command{five}}}},
		"a file without a final newline": {"```console\n$ true\n? 5\n```", []Block{{Line: 1, Commands: []Command{five}}}},
		"a fence in a list": {"1. a\n   - b\n\n     ~~~~ console\n     $ true\n     ```\n     ~~~\n     ? 5\n     ~~~~~\n",
			[]Block{{Line: 4, Commands: []Command{{Line: 5, Text: "true", Want: []string{"```", "~~~"}, Exit: 5}}}}},
		"a hidden block": {
			"text\n\n<!-- console timeout=3s\n$ until a; do\n>   b\n> done\n...\n-->\n\nmore\n",
			[]Block{{Line: 3, Hidden: true, Timeout: 3 * time.Second, Commands: []Command{{Line: 4, Text: "until a; do\n  b\ndone", Want: []string{"..."}}}}},
		},
		"a hidden block in a list, with CRLF": {
			"- a\r\n\r\n  <!--console\r\n  $ true\r\n  ? 5\r\n  -->\r\n",
			[]Block{{Line: 3, Hidden: true, Commands: []Command{{Line: 4, Text: "true", Exit: 5}}}},
		},
		"comments that only mention console": {"<!-- consoles\n$ a\n-->\n<!-- a console -->\n", nil},
		"other languages, comments and inline code are left alone": {
			"```go\n$ a\n```\n```text\n$ a\n```\n```\nplain\n```\n<!--\n```console\n-->\n<!-- ```sh -->\n```` a ```sh ````\n- ```a``` b\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			chapter, err := Parse("c.md", []byte(test.text))
			g.Expect(err).NotTo(HaveOccurred())
			var blocks []Block
			for _, step := range chapter.Steps {
				blocks = append(blocks, step.Blocks...)
			}
			g.Expect(blocks).To(Equal(test.want))
		})
	}
}

func TestParseReadsHeadings(t *testing.T) {
	g := NewWithT(t)
	text := consoleFence("", "$ a") + "# Title #\n##  1.1 C# and more ##\n" + consoleFence("", "$ b") + "#### deep\n" + consoleFence("", "$ c") + "####### no\n#no\n### 1.2\n"
	chapter, err := Parse("c.md", []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	type heading struct {
		line, level, blocks int
		title               string
	}
	var got []heading
	for _, step := range chapter.Steps {
		got = append(got, heading{step.Line, step.Level, len(step.Blocks), step.Title})
	}
	g.Expect(got).To(Equal([]heading{{1, 0, 1, ""}, {4, 1, 0, "Title"}, {5, 2, 2, "1.1 C# and more"}, {15, 3, 0, "1.2"}}))
}

func TestParseReportsMistakes(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // the error without the path
	}{
		"an unknown word":                        {consoleFence(" foo", "$ a"), "1: unknown word foo: a console fence accepts " + consoleWords},
		"a word twice":                           {consoleFence(" timeout=1s timeout=2s", "$ a"), "1: the word timeout is given twice"},
		"a word that can't be read":              {consoleFence(` ready="a`, "$ a"), "1: can't read \"ready=\\\"a\": write words as NAME, NAME=VALUE or NAME=\"VALUE WITH SPACES\""},
		"a time limit of letters":                {consoleFence(" timeout=abc", "$ a"), "1: timeout=abc: write a duration above 0, such as 30s or 5m"},
		"a time limit of zero":                   {consoleFence(" timeout=0s", "$ a"), "1: timeout=0s: write a duration above 0, such as 30s or 5m"},
		"an unknown expectation":                 {consoleFence(" expect=foo", "$ a"), "1: expect=foo: only expect=error is allowed"},
		"an unknown cluster":                     {consoleFence(" cluster=kind,foo", "$ a"), "1: cluster=kind,foo: write one or more of embedded, kind, current, separated by commas"},
		"a cluster twice":                        {consoleFence(" cluster=kind,kind", "$ a"), "1: cluster=kind,kind: write one or more of embedded, kind, current, separated by commas"},
		"makes without cleanup":                  {consoleFence(` makes="crd/a"`, "$ a"), `1: makes="KIND/NAME …" needs cleanup`},
		"makes with a word that is no object":    {consoleFence(` cleanup makes="crd"`, "$ a"), `1: makes: "crd": write objects as KIND/NAME, such as namespace/chapter-1, separated by spaces`},
		"own without a command":                  {consoleFence(` own=""`, "$ a"), `1: own="COMMAND" needs a command`},
		"makes without an object":                {consoleFence(` cleanup makes=""`, "$ a"), `1: makes="KIND/NAME …" needs an object`},
		"a value for cleanup":                    {consoleFence(" cleanup=yes", "$ a"), "1: cleanup takes no value"},
		"background without ready":               {consoleFence(" background=op", "$ a"), `1: background=op needs ready="TEXT", the output that shows that the process is ready`},
		"an empty ready":                         {consoleFence(` background=op ready=""`, "$ a"), `1: ready="TEXT" needs the text that shows that the process is ready`},
		"background without a name":              {consoleFence(` background ready=a`, "$ a"), `1: background=: write a name of letters, digits, - and _` + "\n" + `1: ready="TEXT" needs background=NAME`},
		"ready without background":               {consoleFence(` ready=a`, "$ a"), `1: ready="TEXT" needs background=NAME`},
		"background and expect":                  {consoleFence(` background=op ready=a expect=error`, "$ a"), "1: expect=error can't be combined with background=op"},
		"background and cleanup":                 {consoleFence(` background=op ready=a cleanup`, "$ a"), "1: cleanup can't be combined with background=op: the process is stopped at the end anyway"},
		"background of two commands":             {consoleFence(` background=op ready=a`, "$ a", "$ b"), "1: background=op needs exactly one command"},
		"background with output":                 {consoleFence(` background=op ready=a`, "$ a", "b"), "1: background=op can't have expected output: ready= says what to wait for"},
		"background with a status":               {consoleFence(` background=op ready=a`, "$ a", "? 1"), "3: background=op can't expect an exit status"},
		"background started twice":               {consoleFence(` background=op ready=a`, "$ a") + consoleFence(` background=op ready=a`, "$ a"), "4: background=op has been running since line 1: stop it first, or use another name"},
		"stop without background":                {consoleFence(` stop=op`), "1: stop=op: no background process with this name is running here"},
		"stop without a name":                    {consoleFence(` stop=`, "$ a"), "1: stop=: write the name of a background process"},
		"a blank line":                           {consoleFence("", "$ a", " ", "b"), "3: blank line inside a console fence: write [..] for an empty line of output, or close the block"},
		"a blank line after \\":                  {consoleFence("", `$ a \`, "", "b"), `2: this line ends in \, but nothing continues it` + "\n3: blank line inside a console fence: write [..] for an empty line of output, or close the block"},
		"a command after \\":                     {consoleFence("", `$ a \`, "$ b"), `2: this line ends in \, but nothing continues it`},
		"nothing after \\":                       {consoleFence("", `$ a \`), `2: this line ends in \, but nothing continues it`},
		"white space after \\":                   {consoleFence("", `$ a \ `, "b"), `2: white space after the \ at the end of the line: remove it`},
		"no command":                             {"```console\n```\n", `1: this console fence has no command: write "$ " before the command`},
		"a prompt without a command":             {consoleFence("", "$ ", "$ a", "$"), "2: a command is missing after the $\n4: a command is missing after the $"},
		"output before a command":                {consoleFence("", "a", "$ b"), `2: output before the first command: commands start with "$ "`},
		"a status before a command":              {consoleFence("", "? 1", "$ b"), `2: "? N" before the first command`},
		"a status of letters":                    {consoleFence("", "$ a", "? no"), "3: ? no: write an exit status from 0 to 255; for output that starts with ?, write [..]"},
		"a status that is too big":               {consoleFence("", "$ a", "? 256"), "3: ? 256: write an exit status from 0 to 255; for output that starts with ?, write [..]"},
		"a status without a number":              {consoleFence("", "$ a", "?"), "3: ? : write an exit status from 0 to 255; for output that starts with ?, write [..]"},
		"output after the status":                {consoleFence("", "$ a", "? 1", "b"), `4: only a command can follow "? N"`},
		"two statuses":                           {consoleFence("", "$ a", "? 1", "? 2"), `4: only a command can follow "? N"`},
		"a heredoc without an end":               {consoleFence("", "$ cat <<EOF", "$ a", ""), "2: this command is not complete: unclosed here-document `EOF`"},
		"an open single quote":                   {consoleFence("", "$ a 'b", "c", "$ d"), "2: this command is not complete: reached EOF without closing quote `'`"},
		"an open double quote":                   {consoleFence("", `$ a "b`, "", `c"`), "2: this command is not complete: reached EOF without closing quote `\"`\n3: blank line inside a console fence: write [..] for an empty line of output, or close the block"},
		"a condition without an end":             {consoleFence("", "$ if a; then", "> b", "$ fi"), "2: this command is not complete: `if` statement must end with `fi`\n4: the shell can't read this command: `fi` can only be used to end an `if`"},
		"a mistake in a later line of a command": {consoleFence("", "$ :", "$ for a in b; do", "> c ;; d", "> done"), "4: the shell can't read this command: `;;` can only be used in a case clause"},
		"what only bash can read":                {consoleFence("", "$ a=(b c)"), "2: the shell can't read this command: arrays are a bash/mksh/zsh feature; tried parsing as posix"},
		"a fence without an end":                 {"text\n````console\n$ a\n```\n", "2: this fence is never closed: write ```` on a line of its own at its end"},
		"a comment without an end":               {"<!-->\n", "1: this comment is never closed: write --> at its end"},
		"a hidden block in one line":             {"<!-- console $ a -->\n", "1: a hidden console block must end with --> on a line of its own"},
		"a hidden block that ends within a line": {"<!-- console\n$ a -->\n", "2: a hidden console block must end with --> on a line of its own"},
		"a mistake in a hidden block":            {"<!-- console tmeout=1s\n$ a\n\n-->\n", "1: unknown word tmeout: a console fence accepts " + consoleWords + "\n3: blank line inside a console fence: write [..] for an empty line of output, or close the block"},
		"a shell fence":                          {"```sh\na\n```\n```Bash x\na\n```\n", "1: a sh fence would not be played: use console, or text for what is only shown\n4: a Bash fence would not be played: use console, or text for what is only shown"},
		"a language like console":                {"```Console\n$ a\n```\n", "1: unknown language Console: write console, in lower case and followed by a space"},
		"commands without a language":            {"```\n$ a\n```\n", "1: a fence without a language would not be played: use console, or text for what is only shown"},
		"a fence on the line of a list marker":   {"- ```console\n  $ a\n  ```\n", "1: a fence can't start after a list marker or a > sign: give it a line of its own"},
		"a fence in a quotation":                 {"> ```console\n> $ a\n> ```\n", "1: a fence can't start after a list marker or a > sign: give it a line of its own"},
		"a line left of its fence":               {"  ```console\n  $ a\n b\n  ```\n", "3: this line is indented less than its fence, which opens on line 1"},
		"a fence after a tab":                    {"\t```console\n\t$ a\n\t```\n", "1: Markdown does not read this as a fence: indent it like the text around it, and write a blank line before it"},
		"a fence too far right":                  {"text\n    ```console\n    $ a\n    ```\n", "2: Markdown does not read this as a fence: indent it like the text around it, and write a blank line before it"},
		"a fence within HTML":                    {"<details>\n```console\n$ a\n```\n", "2: Markdown does not read this as a fence: indent it like the text around it, and write a blank line before it"},
		"a fence left of its list":               {"- a\n\n  ```console\n  $ a\n```\n", "3: this fence is never closed: write ``` on a line of its own at its end\n5: this fence is never closed: write ``` on a line of its own at its end"},
		"an unknown snippet word":                {"```go file=a sybol=b\n```\n", "1: unknown word sybol: a go fence accepts file=PATH, symbol=NAME and step=ID"},
		"symbol in a yaml fence":                 {"```yaml file=a symbol=b\n```\n", "1: unknown word symbol: a yaml fence accepts file=PATH, key=KEY and step=ID"},
		"key in a text fence":                    {"```text file=a key=b\n```\n", "1: unknown word key: a text fence accepts file=PATH and step=ID"},
		"a symbol without a file":                {"```go symbol=b\n```\n", "1: file=PATH is missing: it names the file to show, relative to the root of the repository"},
		"a diff without a step":                  {"```diff file=a symbol=b\n```\n", "1: step=ID is missing: a diff fence shows what this step of the exercises changes"},
		"a diff with symbol and key":             {"```diff file=a symbol=b key=c step=1.1\n```\n", "1: use symbol= for Go or key= for YAML, not both"},
		"an unknown diff word":                   {"```diff file=a sybol=b step=1.1\n```\n", "1: unknown word sybol: a diff fence accepts file=PATH, symbol=NAME or key=KEY, and step=ID"},
		"a file without a name":                  {"```go file=\n```\n", "1: file= needs a value"},
		"a file outside the repository":          {"```go file=../a\n```\n", "1: file=../a: write a path within the repository, relative to its root"},
		"several mistakes, sorted":               {consoleFence(" stop=op", "$ a", "", "? x") + "```sh\n", "1: stop=op: no background process with this name is running here\n3: blank line inside a console fence: write [..] for an empty line of output, or close the block\n4: ? x: write an exit status from 0 to 255; for output that starts with ?, write [..]\n6: this fence is never closed: write ``` on a line of its own at its end\n6: a sh fence would not be played: use console, or text for what is only shown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := Parse("c.md", []byte(test.text))
			g.Expect(err).To(MatchError("c.md:" + strings.ReplaceAll(test.want, "\n", "\nc.md:")))
		})
	}
}

func TestLoadNamesAMissingFile(t *testing.T) {
	_, err := Load("no-such-file.md")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("read chapter: open no-such-file.md")))
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"# A\n## 1.1 B\n```console timeout=1s\n$ a \\\n> b\n[..]\n...\n? 1\n```\n",
		"```console background=op ready=\"up\"\n$ a\n```\n~~~console stop=op\n~~~\n",
		"```console\n$ cat <<'A' <<-B; echo $((1 << 2)) \"$(cat <<C)\" ${x:-'y'} `z` # it's\n\nA\n\tB\nC\n```\n",
		"- ```console\n> ~~~\n<!-- -->\n```go file=a symbol=b\r\n```\r\n",
		"```console\n$ <<\\\n```\n",
		"<!-- console timeout=1s\n$ a\n-->\n```diff file=a symbol=b step=1.1\n```\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := NewWithT(t)
		first, err := Parse("c.md", text)
		second, again := Parse("c.md", text)
		if err != nil {
			g.Expect(again).To(MatchError(err.Error()))
			return
		}
		g.Expect(again).NotTo(HaveOccurred())
		g.Expect(second).To(Equal(first))
		lines := strings.Split(string(text), "\n")
		for _, step := range first.Steps {
			for _, block := range step.Blocks {
				for _, command := range block.Commands {
					g.Expect(lines[command.Line-1]).To(ContainSubstring("$ "))
				}
			}
		}
	})
}
