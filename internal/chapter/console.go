package chapter

import (
	"strings"
)

// console parses the body of a console fence.
type console struct {
	fence    *fence
	block    *Block
	problems *problemList
	next     int  // index of the line to read
	status   bool // the last command has its "? N" already
}

func isPrompt(line string) bool { return line == "$" || strings.HasPrefix(line, "$ ") }

func isContinuation(line string) bool { return strings.TrimSpace(line) != "" && !isPrompt(line) }

func parseConsole(f *fence, block *Block, problems *problemList) {
	c := &console{fence: f, block: block, problems: problems}
	for c.next < len(f.body) {
		c.parseLine()
	}
	switch {
	case len(block.Commands) == 0 && block.Stop == "":
		c.report(-1, `this console fence has no command: write "$ " before it`)
	case block.Background != "" && len(block.Commands) != 1:
		c.report(-1, "background=%s needs exactly one command", block.Background)
	case block.Background != "" && len(block.Commands[0].Want) > 0:
		c.report(-1, "background=%s can't have expected output: ready= says what to wait for", block.Background)
	}
}

// report adds a problem at the line with this index in the fence; -1 is the fence itself.
func (c *console) report(index int, format string, args ...any) {
	c.problems.add(c.fence.line+1+index, format, args...)
}

func (c *console) parseLine() {
	index := c.next
	line := c.fence.body[index]
	switch {
	case strings.TrimSpace(line) == "":
		c.report(index, "blank line inside a console fence: write [..] for an empty line of output, or close the block")
	case isPrompt(line):
		c.parseCommand()
	case line == "?" || strings.HasPrefix(line, "? "):
		c.parseStatus(index, strings.TrimSpace(line[1:]))
	case len(c.block.Commands) == 0:
		c.report(index, `output before the first command: commands start with "$ "`)
	case c.status:
		c.report(index, `only a command can follow "? N"`)
	default:
		command := &c.block.Commands[len(c.block.Commands)-1]
		command.Want = append(command.Want, strings.TrimRight(line, " \t"))
	}
	c.next++
}

func (c *console) parseStatus(index int, text string) {
	exit, err := parseExit(text)
	switch {
	case err != nil:
		c.report(index, "%v", err)
	case len(c.block.Commands) == 0:
		c.report(index, `"? N" before the first command`)
	case c.block.Background != "":
		c.report(index, "background=%s can't expect an exit status", c.block.Background)
	case c.status:
		c.report(index, `only a command can follow "? N"`)
	default:
		c.block.Commands[len(c.block.Commands)-1].Exit = exit
	}
	c.status = true
}

// parseCommand reads a command with its continuation lines and heredocs, and leaves c.next at its last line.
func (c *console) parseCommand() {
	first := c.next
	lines := []string{strings.TrimSpace(strings.TrimPrefix(c.fence.body[first], "$"))}
	if lines[0] == "" {
		c.report(first, "a command is missing behind the $")
	}
	for c.continues(c.next) {
		if c.next+1 == len(c.fence.body) || !isContinuation(c.fence.body[c.next+1]) {
			c.report(c.next, `this line ends in \, but nothing continues it`)
			break
		}
		c.next++
		lines = append(lines, strings.TrimPrefix(c.fence.body[c.next], "> "))
	}
	heredocs, quoteOpen := findHeredocs(strings.Join(lines, "\n"))
	if quoteOpen {
		c.report(first, `a quote is never closed in this command: continue the line with \, or use a heredoc`)
	}
	for _, doc := range heredocs {
		lines = append(lines, c.readHeredoc(first, doc)...)
	}
	exit := 0
	if c.block.ExpectError {
		exit = AnyError
	}
	c.status = false
	c.block.Commands = append(c.block.Commands, Command{
		Line: c.fence.line + 1 + first,
		Text: strings.Join(lines, "\n"),
		Exit: exit,
	})
}

// continues tells whether the line with this index ends in a backslash that is not itself escaped.
func (c *console) continues(index int) bool {
	line := c.fence.body[index]
	text := strings.TrimRight(line, " \t")
	backslashes := len(text) - len(strings.TrimRight(text, `\`))
	if backslashes%2 == 0 {
		return false
	}
	if text != line {
		c.report(index, `white space behind the \ at the end of the line: remove it`)
	}
	return true
}

// readHeredoc returns the lines of a heredoc, which start behind c.next, up to and with its delimiter.
func (c *console) readHeredoc(command int, doc heredoc) []string {
	start := c.next + 1
	for i := start; i < len(c.fence.body); i++ {
		line := c.fence.body[i]
		if doc.stripTabs {
			line = strings.TrimLeft(line, "\t")
		}
		if line == doc.delimiter {
			c.next = i
			return c.fence.body[start : i+1]
		}
	}
	c.report(command, "the heredoc <<%s of this command has no line %s at its end", doc.delimiter, doc.delimiter)
	c.next = len(c.fence.body) - 1
	return c.fence.body[start:]
}
