package chapter

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestACommandReachesToTheEndOfItsHeredocs appends to each command the heredocs that it opens, and then a line of output.
func TestACommandReachesToTheEndOfItsHeredocs(t *testing.T) {
	tests := map[string]struct {
		command    string
		delimiters []string
	}{
		"none":                              {"cat <file >other", nil},
		"plain":                             {"cat <<EOF | wc", []string{"EOF"}},
		"with space":                        {"cat << EOF;", []string{"EOF"}},
		"single-quoted":                     {"cat <<'E OF'", []string{"E OF"}},
		"double-quoted":                     {`cat <<"EOF"`, []string{"EOF"}},
		"escaped":                           {`cat <<\EOF`, []string{"EOF"}},
		"with a tab before the delimiter":   {"cat <<-EOF", []string{"\tEOF"}},
		"two":                               {"a <<EOF && b <<B", []string{"EOF", "B"}},
		"in a command substitution":         {`a "$(cat <<EOF`, []string{"EOF\n)\""}},
		"in backquotes":                     {"a `cat <<EOF", []string{"EOF\n`"}},
		"in a subshell":                     {"(cat <<EOF)", []string{"EOF"}},
		"after a case pattern":              {"case a in a) cat <<EOF;; esac", []string{"EOF"}},
		"after quotes of all kinds":         {`a 'b"' "c'" \' \" "\"" <<EOF`, []string{"EOF"}},
		"after a quote in a parameter":      {`a "${b:-c}" ${c:-'}'} <<EOF`, []string{"EOF"}},
		"not in single quotes":              {"a '<<EOF'", nil},
		"not in double quotes":              {`a "<<EOF"`, nil},
		"not in a comment":                  {"a # it's <<EOF", nil},
		"in what only looks like a comment": {"a#b <<EOF", []string{"EOF"}},
		"not in arithmetic":                 {"a $((1 << (2 << 3))) $((4<<x))", nil},
		"after arithmetic":                  {"a $(( (1) )) <<EOF", []string{"EOF"}},
		"quotes in a substitution":          {`a "$(b "c" 'd"')"`, nil},
		"not after an escaped sign":         {`a \<<b`, nil},
		"not in a parameter":                {"a ${b:-<<EOF}", nil},
		"after a continued line":            {"a <<EOF \\\n| wc", []string{"EOF"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := test.command
			for _, delimiter := range test.delimiters {
				text += "\n\n$ a\n? 1\nb \\\n> c\n" + delimiter
			}
			chapter, err := Parse("c.md", []byte(consoleFence("", "$ "+text, "out")))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(chapter.Steps[0].Blocks[0].Commands).To(Equal([]Command{{Line: 2, Text: text, Want: []string{"out"}}}))
		})
	}
}

func TestACommandReachesOverSeveralLines(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a continued line":                {"a \\\n> b", "a \\\nb"},
		"an open single quote":            {"a 'b\n  c'", "a 'b\n  c'"},
		"an open double quote":            {"a \"b\n> c\" && d", "a \"b\nc\" && d"},
		"a condition":                     {"if a; then\n> b\n> fi", "if a; then\nb\nfi"},
		"a loop without prompts":          {"while a\ndo b\ndone", "while a\ndo b\ndone"},
		"a list that ends in an operator": {"a &&\nb", "a &&\nb"},
		"a substitution":                  {"a $(b\n> )", "a $(b\n)"},
		"a heredoc in a condition":        {"if a; then\n> cat <<EOF\n> b\n\nEOF\n> fi", "if a; then\ncat <<EOF\n> b\n\nEOF\nfi"},
		"a heredoc of a continued line":   {"a <<EOF \\\n> | wc\n> b\nEOF", "a <<EOF \\\n| wc\n> b\nEOF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			chapter, err := Parse("c.md", []byte(consoleFence("", "$ "+test.text, "out", "$ next")))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(chapter.Steps[0].Blocks[0].Commands).To(Equal([]Command{
				{Line: 2, Text: test.want, Want: []string{"out"}}, {Line: 4 + strings.Count(test.text, "\n"), Text: "next"},
			}))
		})
	}
}
