package chapter

import (
	"fmt"
	"slices"
	"strings"
)

// Commands returns the commands that readers type, ready to paste into a shell: those of the chapter or, if section is not
// empty, of the section with this number or title. Comments name each section, and say what readers must know before they
// run a command.
func (c *Chapter) Commands(section string) (string, error) {
	steps := c.Steps
	if section != "" {
		steps = c.section(section)
		if steps == nil {
			return "", fmt.Errorf("%s has no section %q: choose one of %s", c.Path, section, c.sections())
		}
	}
	var text strings.Builder
	for _, step := range steps {
		commands := step.commands()
		if commands == "" {
			continue
		}
		if step.Title != "" {
			fmt.Fprintf(&text, "# %s\n\n", step.Title)
		}
		text.WriteString(commands)
	}
	if text.Len() == 0 {
		return "", fmt.Errorf("%s has no commands", strings.TrimSuffix(c.Path+", "+section, ", "))
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// section returns the step with this number or title, and the steps below it in the tree of headings. If there is no
// such step, it returns nil.
func (c *Chapter) section(name string) []Step {
	first := slices.IndexFunc(c.Steps, func(step Step) bool {
		return step.Number() == name || strings.EqualFold(step.Title, name)
	})
	if first < 0 {
		return nil
	}
	end := first + 1
	for end < len(c.Steps) && c.Steps[end].Level > c.Steps[first].Level {
		end++
	}
	return c.Steps[first:end]
}

// sections lists the names to choose from: the steps' numbers or, if no step has one, their titles.
func (c *Chapter) sections() string {
	names := c.Numbers()
	if len(names) == 0 {
		for _, step := range c.Steps {
			names = append(names, step.Title)
		}
	}
	return strings.Join(names, ", ")
}

// commands returns the commands of the blocks that readers see, each block followed by a blank line.
func (s *Step) commands() string {
	var text strings.Builder
	for _, block := range s.Blocks {
		if block.Hidden || len(block.Commands) == 0 {
			continue
		}
		if len(block.Clusters) > 0 {
			fmt.Fprintf(&text, "# Only with CLUSTER=%s:\n", strings.Join(block.Clusters, " or CLUSTER="))
		}
		if block.Background != "" {
			fmt.Fprintf(&text, "# This keeps running. Once it prints %q, continue in another terminal:\n", block.Ready)
		}
		for _, command := range block.Commands {
			text.WriteString(command.Text + "\n")
		}
		text.WriteString("\n")
	}
	return text.String()
}
