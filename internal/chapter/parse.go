package chapter

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// parser turns a Markdown file into a chapter and collects all mistakes in it.
type parser struct {
	text     []byte
	chapter  *Chapter
	step     Step           // the step that the next fence belongs to
	running  map[string]int // by background process, the line that starts it
	problems []problem
}

type problem struct {
	line    int
	message string
}

// Parse parses a chapter. Its error lists every mistake as path:line: message, sorted by line.
func Parse(path string, text []byte) (*Chapter, error) {
	p := &parser{text: text, chapter: &Chapter{Path: path}, step: Step{Line: 1}, running: map[string]int{}}
	p.read()
	p.endStep(Step{})
	slices.SortStableFunc(p.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, each := range p.problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", path, each.line, each.message))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p.chapter, nil
}

func (p *parser) report(line int, format string, args ...any) {
	p.problems = append(p.problems, problem{line, fmt.Sprintf(format, args...)})
}

// endStep ends the current step and begins the next one.
func (p *parser) endStep(next Step) {
	if p.step.Level > 0 || len(p.step.Blocks) > 0 {
		p.chapter.Steps = append(p.chapter.Steps, p.step)
	}
	p.step = next
}

// shellLanguages are refused, because readers would think that the player has checked such a fence.
var shellLanguages = []string{"sh", "bash", "shell", "zsh", "shellsession", "shell-session", "sh-session", "bash-session"}

// parseFence decides by a fence's language, words and lines whether the fence is played, filled from a file, reported
// as a mistake, or left alone.
func (p *parser) parseFence(f Fence) {
	language, words, err := splitInfo(f.info)
	if err != nil {
		p.report(f.Line, "%v", err)
		return
	}
	switch lower := strings.ToLower(language); {
	case language == "console":
		p.parseBlock(f, words)
	case slices.Contains(shellLanguages, lower):
		p.report(f.Line, "a %s fence would not be played: use console, or text for what is only shown", language)
	case strings.HasPrefix(lower, "console"):
		p.report(f.Line, "unknown language %s: write console, in lower case and followed by a space", language)
	case language == "" && slices.ContainsFunc(f.Body, isPrompt):
		p.report(f.Line, "a fence without a language would not be played: use console, or text for what is only shown")
	case len(words) > 0:
		p.parseSnippet(f, language, words)
	}
}

func (p *parser) parseBlock(f Fence, words []word) {
	block := Block{Line: f.Line, Hidden: f.Mark == ""}
	p.parseBlockWords(words, &block)
	p.parseConsole(f, &block)
	p.step.Blocks = append(p.step.Blocks, block)
	if block.Stop != "" {
		if p.running[block.Stop] == 0 {
			p.report(block.Line, "stop=%s: no background process with this name is running here", block.Stop)
		}
		delete(p.running, block.Stop)
	}
	if block.Background != "" {
		if line := p.running[block.Background]; line != 0 {
			p.report(block.Line, "background=%s has been running since line %d: stop it first, or use another name", block.Background, line)
		}
		p.running[block.Background] = block.Line
	}
}

// parseSnippet reads the words of a fence that is filled from a file.
func (p *parser) parseSnippet(f Fence, language string, words []word) {
	snippet := Snippet{Fence: f, Diff: language == "diff"}
	known := map[string]*string{"file": &snippet.File, "step": &snippet.Step}
	knownText := "file=PATH and step=ID"
	switch language {
	case "go":
		known["symbol"], knownText = &snippet.Symbol, "file=PATH, symbol=NAME and step=ID"
	case "yaml":
		known["key"], knownText = &snippet.Key, "file=PATH, key=KEY and step=ID"
	case "diff":
		known["symbol"], known["key"], knownText = &snippet.Symbol, &snippet.Key, "file=PATH, symbol=NAME or key=KEY, and step=ID"
	}
	for _, w := range words {
		field := known[w.key]
		if field == nil {
			p.report(f.Line, "unknown word %s: a %s fence accepts %s", w.key, language, knownText)
			return
		}
		if w.value == "" {
			p.report(f.Line, "%s= needs a value", w.key)
			return
		}
		*field = w.value
	}
	switch {
	case snippet.File == "":
		p.report(f.Line, "file=PATH is missing: it names the file to show, relative to the root of the repository")
	case !filepath.IsLocal(snippet.File):
		p.report(f.Line, "file=%s: write a path within the repository, relative to its root", snippet.File)
	case snippet.Diff && snippet.Step == "":
		p.report(f.Line, "step=ID is missing: a diff fence shows what this step of the exercises changes")
	case snippet.Symbol != "" && snippet.Key != "":
		p.report(f.Line, "use symbol= for Go or key= for YAML, not both")
	default:
		p.chapter.Snippets = append(p.chapter.Snippets, snippet)
	}
}
