package chapter

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// Chapter is a parsed chapter.
type Chapter struct {
	Path     string // as messages show it
	Steps    []Step
	Snippets []Snippet
}

// Step is a heading of level 1 to 3 with the blocks up to the next such heading.
// The blocks before the first heading form a step without a title.
type Step struct {
	Line   int
	Level  int
	Title  string
	Blocks []Block
}

var stepNumber = regexp.MustCompile(`^[0-9]+\.[0-9]+\b`)

// Number returns the N.M at the start of the step's title, or "" if there is none.
func (s *Step) Number() string { return stepNumber.FindString(s.Title) }

// Block is a console fence, or a hidden console block.
type Block struct {
	Line        int
	Hidden      bool   // a comment, which only the player sees
	Background  string // name of the process it starts, or ""
	Ready       string // output that shows that the background process is ready
	Stop        string // name of the background process it stops first, or ""
	ExpectError bool
	Timeout     time.Duration // of each command; 0 means the player's default
	Clusters    []string      // kinds of cluster it is played on; empty means all
	Cleanup     bool
	Makes       []string // what the chapter makes and this block removes: KIND/NAME, where * matches any text
	Own         string   // replaces the block's commands in the section that a learner solved last; "" replaces none
	Commands    []Command
}

// PlayedOn reports whether the block is meant for this kind of cluster.
func (b *Block) PlayedOn(cluster string) bool {
	return len(b.Clusters) == 0 || slices.Contains(b.Clusters, cluster)
}

// AnyError is the Exit of a command that must fail, whatever its exit status.
const AnyError = -1

// Command is the text after a "$ " prompt, with the output and the exit status that the command must have.
type Command struct {
	Line int
	Text string   // for the shell; more than one line if the first is not a complete command
	Want []string // lines of expected output
	Exit int      // 0 to 255, or AnyError
}

// Snippet is a fence whose content comes from a source file.
type Snippet struct {
	Fence
	File   string // relative to the root of the repository, with slashes
	Symbol string // Go symbol, or "" for the whole file
	Key    string // YAML key, or "" for the whole file
	Step   string // ID of the exercise step after which to show the file; "" for the finished file
	Diff   bool   // show only what the step changes
}

// Makes returns what the chapter's cleanup blocks list in makes=, as KIND/NAME, where * matches any text.
func (c *Chapter) Makes() []string {
	var all []string
	for _, step := range c.Steps {
		for _, block := range step.Blocks {
			all = append(all, block.Makes...)
		}
	}
	return all
}

// PlayedOn reports whether any block is meant for this kind of cluster.
func (c *Chapter) PlayedOn(cluster string) bool {
	return slices.ContainsFunc(c.Steps, func(step Step) bool {
		return slices.ContainsFunc(step.Blocks, func(block Block) bool { return block.PlayedOn(cluster) })
	})
}

// Numbers returns the numbers of the steps that have one, as N.M.
func (c *Chapter) Numbers() []string {
	var all []string
	for i := range c.Steps {
		if number := c.Steps[i].Number(); number != "" {
			all = append(all, number)
		}
	}
	return all
}

// Load reads and parses the chapter in the file at path.
func Load(path string) (*Chapter, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read chapter: %w", err)
	}
	return Parse(path, text)
}
