package chapter

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func isPrompt(line string) bool { return line == "$" || strings.HasPrefix(line, "$ ") }

// parseConsole reads the commands of a console fence and the output that they must print.
func (p *parser) parseConsole(f Fence, block *Block) {
	exit := 0
	if block.ExpectError {
		exit = AnyError
	}
	var command *Command // the last one so far
	complete := false    // its status has been read
	for i := 0; i < len(f.Body); i++ {
		line, number := f.Body[i], f.Line+1+i
		status, isStatus := strings.CutPrefix(line+" ", "? ")
		switch {
		case strings.TrimSpace(line) == "":
			p.report(number, "blank line inside a console fence: write [..] for an empty line of output, or close the block")
		case isPrompt(line):
			lines := p.readCommand(f.Body[i:], number)
			block.Commands = append(block.Commands, Command{Line: number, Text: strings.Join(lines, "\n"), Exit: exit})
			command, complete = &block.Commands[len(block.Commands)-1], false
			i += len(lines) - 1
		case isStatus:
			p.parseStatus(number, strings.TrimSpace(status), block, command, complete)
			complete = true
		case command == nil:
			p.report(number, `output before the first command: commands start with "$ "`)
		case complete:
			p.report(number, `only a command can follow "? N"`)
		default:
			command.Want = append(command.Want, strings.TrimRight(line, " \t"))
		}
	}
	switch {
	case command == nil && block.Stop == "":
		p.report(f.Line, `this console fence has no command: write "$ " before the command`)
	case block.Background != "" && len(block.Commands) != 1:
		p.report(f.Line, "background=%s needs exactly one command", block.Background)
	case block.Background != "" && len(command.Want) > 0:
		p.report(f.Line, "background=%s can't have expected output: ready= says what to wait for", block.Background)
	}
}

// parseStatus reads the N of a "? N" line into the command before it.
func (p *parser) parseStatus(line int, text string, block *Block, command *Command, complete bool) {
	exit, err := strconv.Atoi(text)
	switch {
	case err != nil || exit < 0 || exit > 255:
		p.report(line, "? %s: write an exit status from 0 to 255; for output that starts with ?, write [..]", text)
	case command == nil:
		p.report(line, `"? N" before the first command`)
	case block.Background != "":
		p.report(line, "background=%s can't expect an exit status", block.Background)
	case complete:
		p.report(line, `only a command can follow "? N"`)
	default:
		command.Exit = exit
	}
}

// readCommand returns the lines of the command that body begins with. The command ends where it is complete according to
// the shell's grammar. number is the line number of body's first line in the file.
func (p *parser) readCommand(body []string, number int) []string {
	lines := []string{strings.TrimSpace(strings.TrimPrefix(body[0], "$"))}
	if lines[0] == "" {
		p.report(number, "a command is missing after the $")
		return lines
	}
	inHeredoc := false
	for {
		last := len(lines) - 1
		continued := !inHeredoc && p.endsInBackslash(body[last], number+last)
		err := checkShell(strings.Join(lines, "\n") + "\n")
		// A heredoc begins after the last of the lines joined by \. The shell's parser does not report an open heredoc as
		// incomplete.
		inHeredoc = !continued && err != nil && strings.Contains(err.Error(), "unclosed here-document")
		if !continued && !inHeredoc && !syntax.IsIncomplete(err) {
			p.reportShell(err, number)
			return lines
		}
		switch next := last + 1; {
		case next < len(body) && inHeredoc:
			lines = append(lines, body[next])
		case next < len(body) && strings.TrimSpace(body[next]) != "" && !isPrompt(body[next]):
			lines = append(lines, strings.TrimPrefix(body[next], "> "))
		case continued:
			p.report(number+last, `this line ends in \, but nothing continues it`)
			return lines
		default:
			p.reportShell(err, number)
			return lines
		}
	}
}

// endsInBackslash reports whether a line ends in a backslash that is not itself escaped. White space after this
// backslash is a mistake.
func (p *parser) endsInBackslash(line string, number int) bool {
	text := strings.TrimRight(line, " \t")
	backslashes := len(text) - len(strings.TrimRight(text, `\`))
	if backslashes%2 == 0 {
		return false
	}
	if text != line {
		p.report(number, `white space after the \ at the end of the line: remove it`)
	}
	return true
}

// checkShell returns an error if a POSIX shell can't parse the command.
func checkShell(command string) error {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(command), "")
	return err
}

// reportShell reports err, an error from checkShell whose text starts with line:column, unless err is nil. line is the
// line on which the command starts.
func (p *parser) reportShell(err error, line int) {
	if err == nil {
		return
	}
	place, message, _ := strings.Cut(err.Error(), ": ")
	row, _, _ := strings.Cut(place, ":")
	if within, err := strconv.Atoi(row); err == nil {
		line += within - 1
	}
	if syntax.IsIncomplete(err) {
		p.report(line, "this command is not complete: %s", message)
		return
	}
	p.report(line, "the shell can't read this command: %s", message)
}
