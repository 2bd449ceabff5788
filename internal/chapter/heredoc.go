package chapter

import "strings"

// heredoc is a << in a command whose text follows on the next lines.
type heredoc struct {
	delimiter string
	stripTabs bool // <<-: tabs before the delimiter do not count
}

// The constructs of the shell's grammar that findHeredocs tells apart, by the character that ends them if there is one.
const (
	inCode        = byte(0)
	inSubshell    = byte(')')
	inParameter   = byte('}')
	inDoubleQuote = byte('"')
	inBackquote   = byte('`')
	inArithmetic  = byte(1) // $((…)), where << shifts
)

// scanner walks through a shell command, just far enough to know which << is a heredoc.
type scanner struct {
	text     string
	pos      int
	stack    []byte
	heredocs []heredoc
}

// findHeredocs returns the heredocs that a command opens, and whether one of its quotes is never closed.
func findHeredocs(command string) (heredocs []heredoc, quoteOpen bool) {
	s := &scanner{text: command, stack: []byte{inCode}}
	for s.pos < len(s.text) {
		if !s.step() {
			return s.heredocs, true
		}
	}
	return s.heredocs, s.top() == inDoubleQuote
}

func (s *scanner) top() byte { return s.stack[len(s.stack)-1] }

func (s *scanner) push(kind byte, length int) {
	s.stack = append(s.stack, kind)
	s.pos += length
}

func (s *scanner) pop() {
	s.stack = s.stack[:len(s.stack)-1]
	s.pos++
}

// rest is the text not read yet; it is never empty in step.
func (s *scanner) rest() string { return s.text[s.pos:] }

// step reads one construct. It returns false when a single quote is never closed.
func (s *scanner) step() bool {
	rest := s.rest()
	switch {
	case rest[0] == '\\':
		s.pos += min(2, len(rest))
	case strings.HasPrefix(rest, "$(("):
		s.push(inArithmetic, 3)
	case strings.HasPrefix(rest, "$("):
		s.push(inSubshell, 2)
	case strings.HasPrefix(rest, "${"):
		s.push(inParameter, 2)
	case rest[0] == s.top() && s.top() > ' ':
		s.pop()
	case rest[0] == '`':
		s.push(inBackquote, 1)
	case s.top() == inDoubleQuote:
		s.pos++
	case rest[0] == '"':
		s.push(inDoubleQuote, 1)
	case s.top() == inArithmetic:
		s.arithmetic()
	case rest[0] == '\'' && !s.inQuotedParameter():
		return s.singleQuote()
	case s.top() == inParameter:
		s.pos++
	case rest[0] == '(':
		s.push(inSubshell, 1)
	case rest[0] == '#' && s.atWordStart():
		s.skipComment()
	case strings.HasPrefix(rest, "<<<"):
		s.pos += 3
	case strings.HasPrefix(rest, "<<"):
		s.readDelimiter()
	default:
		s.pos++
	}
	return true
}

// inQuotedParameter tells whether this is within "${…}", where a single quote stands for itself.
func (s *scanner) inQuotedParameter() bool {
	return s.top() == inParameter && s.stack[len(s.stack)-2] == inDoubleQuote
}

func (s *scanner) arithmetic() {
	switch s.rest()[0] {
	case '(':
		s.push(inArithmetic, 1)
	case ')':
		s.pop()
		// $(( is closed by two; a group within it by one.
		if s.top() != inArithmetic && strings.HasPrefix(s.rest(), ")") {
			s.pos++
		}
	default:
		s.pos++
	}
}

func (s *scanner) singleQuote() bool {
	length := strings.IndexByte(s.rest()[1:], '\'')
	if length < 0 {
		return false
	}
	s.pos += length + 2
	return true
}

func (s *scanner) atWordStart() bool {
	return s.pos == 0 || strings.IndexByte(" \t\n;&|()", s.text[s.pos-1]) >= 0
}

func (s *scanner) skipComment() {
	length := strings.IndexByte(s.rest(), '\n')
	if length < 0 {
		length = len(s.rest())
	}
	s.pos += length
}

// readDelimiter reads << or <<- and the word behind it, without its quotes.
func (s *scanner) readDelimiter() {
	s.pos += len("<<")
	doc := heredoc{stripTabs: strings.HasPrefix(s.rest(), "-")}
	if doc.stripTabs {
		s.pos++
	}
	s.pos = len(s.text) - len(strings.TrimLeft(s.rest(), " \t"))
	doc.delimiter = s.readWord()
	if doc.delimiter != "" {
		s.heredocs = append(s.heredocs, doc)
	}
}

// readWord reads a word and returns it without its quotes.
func (s *scanner) readWord() string {
	var word strings.Builder
	for s.pos < len(s.text) {
		char := s.text[s.pos]
		if strings.IndexByte(" \t\n;&|<>()`", char) >= 0 {
			break
		}
		s.pos++
		switch char {
		case '\'', '"':
			quoted, _, _ := strings.Cut(s.rest(), string(char))
			word.WriteString(quoted)
			s.pos = min(s.pos+len(quoted)+1, len(s.text))
		case '\\':
			if s.pos < len(s.text) {
				word.WriteByte(s.text[s.pos])
				s.pos++
			}
		default:
			word.WriteByte(char)
		}
	}
	return word.String()
}
