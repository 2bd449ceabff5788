package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/operator-workshop/internal/chapter"
)

// Replace replaces the stage's folder with the copy's in the commands of a chapter and in their expected output. In the
// section that was solved last, it uses the commands meant for a learner's copy.
func (c *Copy) Replace(played *chapter.Chapter, solved string) {
	stage := filepath.Base(c.Dir)
	replace := func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, stage, c.name()), workFolder+"/"+c.name(), c.name())
	}
	for i := range played.Steps {
		for j := range played.Steps[i].Blocks {
			block := &played.Steps[i].Blocks[j]
			if block.Own != "" && played.Steps[i].Number() == solved {
				block.Commands = []chapter.Command{{Line: block.Line, Text: block.Own, Want: []string{"..."}}}
			}
			commands := block.Commands
			for k := range commands {
				commands[k].Text = replace(commands[k].Text)
				for line := range commands[k].Want {
					commands[k].Want[line] = replace(commands[k].Want[line])
				}
			}
		}
	}
}

// WorkspaceInPlace writes a Go workspace like the checkout's, with the copy in place of the stage. It returns the path
// of the workspace file, for GOWORK.
func (c *Copy) WorkspaceInPlace() (string, error) {
	content, err := os.ReadFile(filepath.Join(c.Root, "go.work"))
	if err != nil {
		return "", fmt.Errorf("read go.work: %w", err)
	}
	stage, text := filepath.Base(c.Dir), string(content)
	own := strings.NewReplacer("\t./"+stage+"\n", "\t./"+filepath.Base(c.Path)+"\n", "\t./", "\t../", "\t.\n", "\t..\n").Replace(text)
	path := filepath.Join(c.work(), "."+stage+".work")
	sums, err := os.ReadFile(filepath.Join(c.Root, "go.work.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read go.work.sum: %w", err)
	}
	if err := errors.Join(os.WriteFile(path, []byte(own), 0o644), os.WriteFile(path+".sum", sums, 0o644)); err != nil {
		return "", fmt.Errorf("write a workspace with %s: %w", c.name(), err)
	}
	return path, nil
}
