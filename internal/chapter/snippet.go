package chapter

import (
	"path/filepath"
	"slices"
)

// parseSnippet reads the words of a fence that is cut from a file.
func parseSnippet(f *fence, language string, words []word, chapter *Chapter, problems *problemList) {
	snippet := Snippet{Line: f.line, fence: f}
	known, knownText := []string{"file"}, otherWords
	switch language {
	case "go":
		known, knownText = append(known, "symbol"), goWords
	case "yaml":
		known, knownText = append(known, "key"), yamlWords
	}
	for _, w := range words {
		if !slices.Contains(known, w.key) {
			problems.add(f.line, "unknown word %s: a %s fence knows %s", w.key, language, knownText)
			return
		}
		if w.value == "" {
			problems.add(f.line, "%s= needs a value", w.key)
			return
		}
		switch w.key {
		case "file":
			snippet.File = w.value
		case "symbol":
			snippet.Symbol = w.value
		case "key":
			snippet.Key = w.value
		}
	}
	if snippet.File == "" {
		problems.add(f.line, "file=PATH is missing: it names the file, from the root of the repository, that this is cut from")
		return
	}
	if !filepath.IsLocal(snippet.File) {
		problems.add(f.line, "file=%s: a path within the repository, from its root, is needed", snippet.File)
		return
	}
	chapter.Snippets = append(chapter.Snippets, snippet)
}
