package chapter

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Chapter is a parsed chapter.
type Chapter struct {
	Path     string // as in messages
	Steps    []Step
	Snippets []Snippet
}

// Step is a heading of level 1 to 3 with the console fences up to the next one.
// What precedes the first heading is a step without a title.
type Step struct {
	Line   int
	Level  int
	Title  string
	Blocks []Block
}

// Block is a console fence.
type Block struct {
	Line        int
	Background  string // name of the process it starts, or ""
	Ready       string // output that tells that the background process is ready
	Stop        string // name of the background process it stops first, or ""
	ExpectError bool
	Timeout     time.Duration // of each command; 0 means the player's default
	Clusters    []string      // kinds of cluster it is played on; empty means all
	Cleanup     bool
	Makes       []string // what the chapter makes and this block removes: KIND/NAME, where * stands for any text
	Commands    []Command
}

// PlayedOn tells whether the block is meant for this kind of cluster.
func (b *Block) PlayedOn(cluster string) bool {
	return len(b.Clusters) == 0 || slices.Contains(b.Clusters, cluster)
}

// Makes is what the chapter makes in a cluster and removes in the end, as KIND/NAME, where * stands for any text.
func (c *Chapter) Makes() []string {
	var all []string
	for _, step := range c.Steps {
		for _, block := range step.Blocks {
			all = append(all, block.Makes...)
		}
	}
	return all
}

// AnyError is the Exit of a command that must fail with whatever status.
const AnyError = -1

// Command is what follows a "$ " prompt, with the output and the exit status that it must have.
type Command struct {
	Line int
	Text string   // for the shell; has several lines where \ or a heredoc continues the first
	Want []string // lines of expected output
	Exit int      // 0 to 255, or AnyError
}

// Snippet is a fence that is cut from a source file.
type Snippet struct {
	Line   int
	File   string // relative to the root of the repository, with slashes
	Symbol string // Go symbol, or "" for the whole file
	Key    string // YAML key, or "" for the whole file
	fence  *fence
}

// Problem is a mistake in the text of a chapter.
type Problem struct {
	Path    string
	Line    int
	Message string
}

func (p Problem) Error() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message) }

// problemList collects all mistakes of a chapter.
type problemList struct {
	path string
	list []Problem
}

func (p *problemList) add(line int, format string, args ...any) {
	p.list = append(p.list, Problem{Path: p.path, Line: line, Message: fmt.Sprintf(format, args...)})
}

// err returns the problems as one error that prints one a line, sorted; nil when there are none.
func (p *problemList) err() error {
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(p.list))
	for i, problem := range p.list {
		errs[i] = problem
	}
	return errors.Join(errs...)
}

// Load reads and parses the chapter in the file at path.
func Load(path string) (*Chapter, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read chapter: %w", err)
	}
	return Parse(path, text)
}

// Parse parses a chapter. Its error lists every problem as path:line: message, sorted by line.
func Parse(path string, text []byte) (*Chapter, error) {
	problems := &problemList{path: path}
	chapter := &Chapter{Path: path}
	step := &Step{Line: 1}
	for _, it := range scanMarkdown(string(text), problems) {
		switch {
		case it.fence != nil:
			parseFence(it.fence, chapter, step, problems)
		case it.level <= 3:
			chapter.addStep(step)
			step = &Step{Line: it.line, Level: it.level, Title: it.title}
		}
	}
	chapter.addStep(step)
	checkBackgrounds(chapter, problems)
	if err := problems.err(); err != nil {
		return nil, err
	}
	return chapter, nil
}

func (c *Chapter) addStep(step *Step) {
	if step.Level > 0 || len(step.Blocks) > 0 {
		c.Steps = append(c.Steps, *step)
	}
}

// parseFence decides by the language what a fence is: played, cut from a file, or left alone.
func parseFence(f *fence, chapter *Chapter, step *Step, problems *problemList) {
	language, words, err := splitInfo(f.info)
	if err != nil {
		problems.add(f.line, "%v", err)
		return
	}
	switch lower := strings.ToLower(language); {
	case language == "console":
		block := Block{Line: f.line}
		parseBlockWords(words, &block, problems)
		parseConsole(f, &block, problems)
		step.Blocks = append(step.Blocks, block)
	case slices.Contains(shellLanguages, lower):
		problems.add(f.line, "a %s fence would not be played: use console, or text for what is only shown", language)
	case strings.HasPrefix(lower, "console"):
		problems.add(f.line, "unknown language %s: write console, in small letters and with a space behind it", language)
	case language == "" && slices.ContainsFunc(f.body, isPrompt):
		problems.add(f.line, "a fence without a language would not be played: use console, or text for what is only shown")
	case len(words) > 0:
		parseSnippet(f, language, words, chapter, problems)
	}
}

// shellLanguages are refused: readers would take such a fence for something the player has checked.
var shellLanguages = []string{"sh", "bash", "shell", "zsh", "shellsession", "shell-session", "sh-session", "bash-session"}

// checkBackgrounds reports names of background processes that are started twice, or stopped without running.
func checkBackgrounds(chapter *Chapter, problems *problemList) {
	started := map[string]int{}
	for _, step := range chapter.Steps {
		for _, block := range step.Blocks {
			if block.Stop != "" {
				if started[block.Stop] == 0 {
					problems.add(block.Line, "stop=%s: no background process of this name runs here", block.Stop)
				}
				delete(started, block.Stop)
			}
			if block.Background == "" {
				continue
			}
			if line := started[block.Background]; line != 0 {
				problems.add(block.Line, "background=%s already runs since line %d: stop it first, or use another name", block.Background, line)
			}
			started[block.Background] = block.Line
		}
	}
}
