package chapter

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestFindHeredocs(t *testing.T) {
	eof := []heredoc{{delimiter: "EOF"}}
	tests := map[string]struct {
		command string
		want    []heredoc
		open    bool
	}{
		"none":                               {command: "cat <file >other"},
		"plain":                              {command: "cat <<EOF | wc", want: eof},
		"with space":                         {command: "cat << EOF;", want: eof},
		"single-quoted":                      {command: "cat <<'E OF'", want: []heredoc{{delimiter: "E OF"}}},
		"double-quoted":                      {command: `cat <<"EOF"`, want: eof},
		"escaped":                            {command: `cat <<\EOF`, want: eof},
		"without tabs":                       {command: "cat <<-EOF", want: []heredoc{{delimiter: "EOF", stripTabs: true}}},
		"two":                                {command: "a <<EOF && b <<B", want: []heredoc{{delimiter: "EOF"}, {delimiter: "B"}}},
		"in a command substitution":          {command: `a "$(cat <<EOF)"`, want: eof},
		"in backquotes":                      {command: "a `cat <<EOF`", want: eof},
		"in a sub-shell":                     {command: "(cat <<EOF)", want: eof},
		"behind a case pattern":              {command: "case a in a) cat <<EOF;; esac", want: eof},
		"behind quotes of all kinds":         {command: `a 'b"' "c'" \' \" "\"" <<EOF`, want: eof},
		"behind a quote in a parameter":      {command: `a "${b:-it's}" ${c:-'}'} <<EOF`, want: eof},
		"not in single quotes":               {command: "a '<<EOF'"},
		"not in double quotes":               {command: `a "<<EOF"`},
		"not in a comment":                   {command: "a # it's <<EOF"},
		"in what only looks like a comment":  {command: "a#b <<EOF", want: eof},
		"not in arithmetic":                  {command: "a $((1 << (2 << 3))) $((4<<x))"},
		"behind arithmetic":                  {command: "a $(( (1) )) <<EOF", want: eof},
		"not a here-string":                  {command: "a <<< b"},
		"not without a word":                 {command: "a <<"},
		"an open single quote":               {command: "a 'b", open: true},
		"an open double quote":               {command: `a "b`, open: true},
		"quotes that a substitution holds":   {command: `a "$(b "c" 'd"')"`},
		"a comment with a quote in between":  {command: "a # it's\nb <<EOF", want: eof},
		"a character that marks arithmetic":  {command: "a \x01 \x00 <<EOF", want: eof},
		"a word that ends in open quotes":    {command: `a <<"EOF`, want: eof},
		"a word that ends in a backslash":    {command: `a <<EOF\`, want: eof},
		"an escaped sign is not a heredoc":   {command: `a \<<b`},
		"a parameter does not hold heredocs": {command: "a ${b<<EOF}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			heredocs, open := findHeredocs(test.command)
			g.Expect(heredocs).To(Equal(test.want))
			g.Expect(open).To(Equal(test.open))
		})
	}
}
