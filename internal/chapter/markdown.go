package chapter

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Fence is a fenced code block, or a hidden console block, in a Markdown file.
type Fence struct {
	Line       int      // of the opening fence
	Indent     string   // white space before the opening fence
	Mark       string   // the opening run of ` or ~; "" for a hidden console block
	Body       []string // lines without the indentation of the fence
	Start, End int      // byte offsets of the body in the file
	info       string
}

var (
	fenceMark = regexp.MustCompile("^(?:`+|~+)")
	fenceLine = regexp.MustCompile("^[ \t]*(?:`{3,}[^`]*|~{3,}.*)$")
)

// ClosedBy reports whether a line would close the fence.
func (f *Fence) ClosedBy(line string) bool {
	run := strings.TrimSpace(line)
	return len(run) >= len(f.Mark) && strings.Trim(run, f.Mark[:1]) == ""
}

// read reads the headings, the fences and the hidden console blocks of the Markdown text.
func (p *parser) read() {
	document := goldmark.DefaultParser().Parse(text.NewReader(p.text))
	// The function below returns no error.
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		line := 1 + bytes.Count(p.text[:max(node.Pos(), 0)], []byte("\n"))
		switch node := node.(type) {
		case *ast.Heading:
			if node.Level <= 3 {
				p.endStep(Step{Line: line, Level: node.Level, Title: strings.TrimSpace(string(node.Lines().Value(p.text)))})
			}
		case *ast.FencedCodeBlock:
			p.readFence(node, line)
		case *ast.HTMLBlock:
			if node.HTMLBlockType == ast.HTMLBlockType2 {
				p.readComment(node, line)
			} else {
				p.checkText(node)
			}
		default:
			p.checkText(node)
			if node.Type() == ast.TypeDocument || node.Lines().Len() == 0 {
				return ast.WalkContinue, nil
			}
		}
		return ast.WalkSkipChildren, nil
	})
}

// readFence reads a fence from the bytes of the file, because goldmark hides the indentation and the end of a fence.
func (p *parser) readFence(node *ast.FencedCodeBlock, line int) {
	before, opening := p.text[:node.Pos()], p.text[node.Pos():]
	f := Fence{Line: line, Indent: string(before[bytes.LastIndexByte(before, '\n')+1:]), Mark: string(fenceMark.Find(opening))}
	if strings.Trim(f.Indent, " \t") != "" {
		p.report(line, "a fence can't start after a list marker or a > sign: give it a line of its own")
		return
	}
	if node.Info != nil {
		f.info = string(node.Info.Value(p.text))
	}
	first, _, _ := bytes.Cut(opening, []byte("\n"))
	f.Start = min(node.Pos()+len(first)+1, len(p.text))
	f.End = f.Start
	if body := node.Lines(); body.Len() > 0 {
		f.End = body.At(body.Len() - 1).Stop
	}
	for content := range strings.Lines(string(p.text[f.Start:f.End])) {
		content = strings.TrimRight(content, "\r\n")
		trimmed, indented := strings.CutPrefix(content, f.Indent)
		if !indented {
			trimmed = strings.TrimLeft(content, " \t")
		}
		f.Body = append(f.Body, trimmed)
		if !indented && trimmed != "" {
			p.report(line+len(f.Body), "this line is indented less than its fence, which opens on line %d", line)
		}
	}
	closing, _, _ := strings.Cut(string(p.text[f.End:]), "\n")
	if !strings.HasPrefix(closing, f.Indent) || !f.ClosedBy(closing) {
		p.report(line, "this fence is never closed: write %s on a line of its own at its end", f.Mark)
	}
	p.parseFence(f)
}

// hiddenConsole matches the first line of a comment that is a console block.
var hiddenConsole = regexp.MustCompile(`^([ \t]*)<!--[ \t]*(console\b.*)$`)

// readComment reads a comment that is a hidden console block. It ignores every other comment,
// except that it reports one that is never closed.
func (p *parser) readComment(node *ast.HTMLBlock, line int) {
	comment := string(node.Lines().Value(p.text))
	if node.HasClosure() {
		comment += string(node.ClosureLine.Value(p.text))
	}
	if !strings.Contains(strings.TrimPrefix(strings.TrimSpace(comment), "<!--"), "-->") {
		p.report(line, "this comment is never closed: write --> at its end")
		return
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimRight(comment, "\r\n"), "\r\n", "\n"), "\n")
	opening := hiddenConsole.FindStringSubmatch(lines[0])
	if opening == nil {
		return
	}
	last := len(lines) - 1
	if last == 0 || strings.TrimSpace(lines[last]) != "-->" {
		p.report(line+last, "a hidden console block must end with --> on a line of its own")
		return
	}
	f := Fence{Line: line, Indent: opening[1], info: strings.TrimSpace(opening[2])}
	for _, content := range lines[1:last] {
		f.Body = append(f.Body, strings.TrimPrefix(content, f.Indent))
	}
	p.parseFence(f)
}

// checkText reports text that looks like a fence but isn't one. Otherwise its commands would silently be skipped.
func (p *parser) checkText(node ast.Node) {
	if node.Type() != ast.TypeBlock {
		return
	}
	for _, segment := range node.Lines().Sliced(0, node.Lines().Len()) {
		if fenceLine.Match(bytes.TrimRight(segment.Value(p.text), "\r\n")) {
			p.report(1+bytes.Count(p.text[:segment.Start], []byte("\n")),
				"Markdown does not read this as a fence: indent it like the text around it, and write a blank line before it")
			return
		}
	}
}
