// Package pages checks Markdown pages: that links within the repository lead somewhere, that words are spelt correctly,
// and that no phrase belittles readers or makes them read a sentence twice. It also looks for these phrases in the
// comments of Go files and in the text of the exercises. It ignores the code blocks of pages, and all code between
// backquotes.
package pages

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/golangci/misspell"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Checker checks the pages of a repository.
type Checker struct {
	root     string
	spelling *misspell.Replacer
	phrases  *regexp.Regexp
	anchors  map[string]map[string]bool // by page; read when first linked to
}

// NewChecker returns a checker for the repository in the folder root, an absolute path. Links must not lead out of it.
func NewChecker(root string) *Checker {
	spelling := misspell.New()
	spelling.Compile()
	return &Checker{root: root, spelling: spelling, phrases: phrasesPattern(), anchors: map[string]map[string]bool{}}
}

type page struct {
	*Checker
	path     string
	text     []byte
	problems []error
}

// Check returns an error with all problems of the page at path, each as path:line: message.
func (c *Checker) Check(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	p := &page{Checker: c, path: path, text: content}
	// The function below returns no error.
	_ = ast.Walk(parse(content), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.CodeSpan, *ast.AutoLink:
			return ast.WalkSkipChildren, nil
		case *ast.Link:
			p.checkLink(string(node.Destination), p.lineOf(node))
		case *ast.Image:
			p.checkLink(string(node.Destination), p.lineOf(node))
		}
		if node.Type() == ast.TypeBlock && node.FirstChild() != nil && node.FirstChild().Type() == ast.TypeInline {
			p.checkProse(node)
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(p.problems...)
}

// parse reads GitHub Flavored Markdown, which has tables.
func parse(content []byte) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(content))
}

func (p *page) report(line int, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...)))
}

// lineOf returns the line of a node's first text or, if it has none, the first line of the block around it.
func (p *page) lineOf(node ast.Node) int {
	at := -1
	_ = ast.Walk(node, func(inner ast.Node, entering bool) (ast.WalkStatus, error) {
		if text, isText := inner.(*ast.Text); isText && entering && at < 0 {
			at = text.Segment.Start
		}
		return ast.WalkContinue, nil
	})
	for block := node; at < 0 && block != nil; block = block.Parent() {
		if block.Type() == ast.TypeBlock && block.Lines().Len() > 0 {
			at = block.Lines().At(0).Start
		}
	}
	return 1 + bytes.Count(p.text[:max(at, 0)], []byte("\n"))
}

// checkProse checks the words of a block: its text without code and without the addresses of links.
func (p *page) checkProse(block ast.Node) {
	var prose strings.Builder
	starts := map[int]int{} // where a piece of the text begins, in prose and in the file
	_ = ast.Walk(block, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.CodeSpan, *ast.AutoLink:
			if entering {
				prose.WriteString("X") // keeps the words around it apart
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if !entering {
				break
			}
			starts[prose.Len()] = node.Segment.Start
			prose.Write(node.Segment.Value(p.text))
			if node.SoftLineBreak() || node.HardLineBreak() {
				prose.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	line := func(at int) int {
		for begin := at; begin >= 0; begin-- {
			if start, found := starts[begin]; found {
				return 1 + bytes.Count(p.text[:start], []byte("\n"))
			}
		}
		return p.lineOf(block)
	}
	p.reportPhrases(prose.String(), func(at int, message string) { p.report(line(at), "%s", message) })
	if _, wrong := p.spelling.Replace(prose.String()); len(wrong) > 0 {
		for _, each := range wrong {
			p.report(line(0)+each.Line-1, "%q: should it be %q?", each.Original, each.Corrected)
		}
	}
}

// checkLink checks that a link within the repository leads to a file or folder and, if it has a fragment, to a heading.
// Other addresses must begin with https: or mailto:.
func (p *page) checkLink(destination string, line int) {
	address, err := url.Parse(destination)
	switch {
	case err != nil:
		p.report(line, "the link %s: %v", destination, err)
		return
	case address.Scheme == "https" || address.Scheme == "mailto":
		return
	case address.Scheme != "":
		p.report(line, "the link %s: use https, or a path within the repository", destination)
		return
	}
	target, err := filepath.Abs(p.path)
	if err != nil {
		p.report(line, "the link %s: %v", destination, err)
		return
	}
	if address.Path != "" {
		target = filepath.Join(filepath.Dir(target), filepath.FromSlash(address.Path))
	}
	inside, err := filepath.Rel(p.root, target)
	if err != nil || !filepath.IsLocal(inside) || filepath.IsAbs(address.Path) {
		p.report(line, "the link %s leads out of the repository", destination)
		return
	}
	if _, err := os.Stat(target); err != nil {
		p.report(line, "the link %s: there is no such file", destination)
		return
	}
	if address.Fragment == "" {
		return
	}
	headings, err := p.headings(target)
	switch {
	case err != nil:
		p.report(line, "the link %s: %v", destination, err)
	case !headings[address.Fragment]:
		p.report(line, "the link %s: %s has no such heading", destination, filepath.ToSlash(inside))
	}
}

// headings returns the anchors of a page's headings.
func (c *Checker) headings(path string) (map[string]bool, error) {
	if known, found := c.anchors[path]; found {
		return known, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	found := map[string]bool{}
	_ = ast.Walk(parse(content), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if heading, isHeading := node.(*ast.Heading); isHeading && entering {
			anchor := anchorOf(words(heading, content))
			free := anchor
			for i := 1; found[free]; i++ {
				free = fmt.Sprintf("%s-%d", anchor, i)
			}
			found[free] = true
		}
		return ast.WalkContinue, nil
	})
	c.anchors[path] = found
	return found, nil
}

// words returns the text of a node, including code.
func words(node ast.Node, content []byte) string {
	var all strings.Builder
	_ = ast.Walk(node, func(inner ast.Node, entering bool) (ast.WalkStatus, error) {
		if text, isText := inner.(*ast.Text); isText && entering {
			all.Write(text.Segment.Value(content))
		}
		return ast.WalkContinue, nil
	})
	return all.String()
}

// anchorOf returns the anchor that GitHub gives to a heading: in lower case, without punctuation, with - for spaces.
func anchorOf(heading string) string {
	var anchor strings.Builder
	for _, letter := range strings.ToLower(heading) {
		switch {
		case letter == ' ':
			anchor.WriteRune('-')
		case letter == '-' || letter == '_' || unicode.IsLetter(letter) || unicode.IsNumber(letter):
			anchor.WriteRune(letter)
		}
	}
	return anchor.String()
}
