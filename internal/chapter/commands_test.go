package chapter

import (
	"testing"

	. "github.com/onsi/gomega"
)

// page has a block of each kind that matters to a reader who types the commands.
const page = `# A page
` + "```console" + `
$ first
output
[..]
? 1
` + "```" + `
## 1.1 Files
` + "```console timeout=5m" + `
$ cat >file <<'EOF'
$ not a prompt

EOF
$ long \
    command | sort
...
` + "```" + `
### Below it
` + "```console cluster=kind,current" + `
$ kubectl get nodes
` + "```" + `
## 1.2 Processes
` + "```console background=op ready=\"Starting workers\"" + `
$ ./operator
` + "```" + `
<!-- console stop=op
$ wait-as-a-person-would
-->
## 1.3 Text
`

func TestCommands(t *testing.T) {
	const (
		top       = "# A page\n\nfirst\n"
		files     = "# 1.1 Files\n\ncat >file <<'EOF'\n$ not a prompt\n\nEOF\nlong \\\n    command | sort\n\n"
		below     = "# Below it\n\n# Only with CLUSTER=kind or CLUSTER=current:\nkubectl get nodes\n"
		processes = "# 1.2 Processes\n\n# This keeps running. Once it prints \"Starting workers\", continue in another terminal:\n./operator\n"
	)
	tests := map[string]struct{ section, want, err string }{
		"a page":                          {want: top + "\n" + files + below + "\n" + processes},
		"a section and those below it":    {section: "1.1", want: files + below},
		"a section with a hidden block":   {section: "1.2", want: processes},
		"a section by its title":          {section: "below IT", want: below},
		"a section without commands":      {section: "1.3", err: "docs/a.md, 1.3 has no commands"},
		"a section that is only a prefix": {section: "1", err: `docs/a.md has no section "1": choose one of 1.1, 1.2, 1.3`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			chapter, err := Parse("docs/a.md", []byte(page))
			g.Expect(err).NotTo(HaveOccurred())
			commands, err := chapter.Commands(test.section)
			if test.err != "" {
				g.Expect(err).To(MatchError(test.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(commands).To(Equal(test.want))
		})
	}
}

func TestCommandsOfAPageWithoutNumbers(t *testing.T) {
	g := NewWithT(t)
	chapter, err := Parse("docs/a.md", []byte("# A\n## B\n"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = chapter.Commands("C")
	g.Expect(err).To(MatchError(`docs/a.md has no section "C": choose one of A, B`))
	_, err = chapter.Commands("")
	g.Expect(err).To(MatchError("docs/a.md has no commands"))
}
