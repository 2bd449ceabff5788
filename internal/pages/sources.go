package pages

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// exercisesFile is the name of the file with a stage's exercises. textFields are its fields with text for learners.
const exercisesFile = "exercises.yaml"

var textFields = []string{"title", "task", "hints"}

// code matches a piece of code between backquotes.
var code = regexp.MustCompile("`[^`]*`")

// CheckSources looks for avoided phrases in the comments of all Go files that aren't generated, and in the text of all
// exercises. It skips bin, work and hidden folders. It returns an error with all problems, each as path:line: message.
func (c *Checker) CheckSources() error {
	var problems []error
	err := filepath.WalkDir(c.root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != c.root && (strings.HasPrefix(name, ".") || name == "bin" || name == "work"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".go":
			problems = append(problems, c.checkComments(path))
		case name == exercisesFile:
			problems = append(problems, c.checkExercises(path))
		}
		return nil
	})
	return errors.Join(append(problems, err)...)
}

func (c *Checker) checkComments(path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse Go: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	var problems []error
	for _, group := range file.Comments {
		var lines []string
		for _, comment := range group.List {
			lines = append(lines, strings.TrimPrefix(comment.Text, "//"))
		}
		problems = append(problems, c.checkPhrases(path, files.Position(group.Pos()).Line, strings.Join(lines, "\n")))
	}
	return errors.Join(problems...)
}

func (c *Checker) checkExercises(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read exercises: %w", err)
	}
	document := &yaml.Node{}
	if err := yaml.Unmarshal(content, document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var problems []error
	var walk func(node *yaml.Node, isText bool)
	walk = func(node *yaml.Node, isText bool) {
		if node.Kind == yaml.ScalarNode && isText {
			line := node.Line
			if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
				line++ // the text begins below the | or >
			}
			problems = append(problems, c.checkPhrases(path, line, node.Value))
		}
		for i, child := range node.Content {
			isField := node.Kind == yaml.MappingNode && i%2 == 1
			walk(child, isText || isField && slices.Contains(textFields, node.Content[i-1].Value))
		}
	}
	walk(document, false)
	return errors.Join(problems...)
}

// checkPhrases looks for avoided phrases in a string, except in code. The string begins on the given line of the file.
func (c *Checker) checkPhrases(path string, line int, text string) error {
	if inside, err := filepath.Rel(c.root, path); err == nil {
		path = inside
	}
	// Replace each character of code with an X, but keep its line breaks, so that later lines keep their numbers.
	text = code.ReplaceAllStringFunc(text, func(code string) string {
		return regexp.MustCompile(`[^\n]`).ReplaceAllString(code, "X")
	})
	var problems []error
	c.reportPhrases(text, func(at int, message string) {
		problems = append(problems, fmt.Errorf("%s:%d: %s", path, line+strings.Count(text[:at], "\n"), message))
	})
	return errors.Join(problems...)
}
