package chapter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/providers"
)

// consoleWords lists the words that may follow console, for messages.
const consoleWords = `background=NAME ready="TEXT", stop=NAME, expect=error, timeout=DURATION, cluster=NAME[,NAME], cleanup, makes="KIND/NAME …" and own="COMMAND"`

var (
	infoWord       = regexp.MustCompile(`^([A-Za-z]+)(?:=("[^"]*"|[^\s"]\S*|))?(?:\s+|$)`)
	backgroundName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	madeObject     = regexp.MustCompile(`^[a-z]+/[a-z0-9.*-]+$`)
)

// word is one word of an info string: key, or key=value.
type word struct {
	key, value string
	hasValue   bool
}

// splitInfo splits an info string into the language and the words after it.
func splitInfo(info string) (language string, words []word, err error) {
	language, rest := info, ""
	if end := strings.IndexAny(info, " \t"); end >= 0 {
		language, rest = info[:end], strings.TrimSpace(info[end:])
	}
	for rest != "" {
		m := infoWord.FindStringSubmatch(rest)
		if m == nil {
			return language, words, fmt.Errorf("can't read %q: write words as NAME, NAME=VALUE or NAME=\"VALUE WITH SPACES\"", rest)
		}
		w := word{key: m[1], value: strings.Trim(m[2], `"`), hasValue: strings.HasPrefix(rest[len(m[1]):], "=")}
		if slices.ContainsFunc(words, func(other word) bool { return other.key == w.key }) {
			return language, words, fmt.Errorf("the word %s is given twice", w.key)
		}
		words = append(words, w)
		rest = rest[len(m[0]):]
	}
	return language, words, nil
}

// parseBlockWords reads the words of a console fence into block and reports every mistake in them.
func (p *parser) parseBlockWords(words []word, block *Block) {
	// check reports a mistake unless ok is true.
	check := func(ok bool, format string, args ...any) {
		if !ok {
			p.report(block.Line, format, args...)
		}
	}
	hasReady := false
	for _, w := range words {
		switch w.key {
		case "background":
			block.Background = w.value
			check(backgroundName.MatchString(w.value), "background=%s: write a name of letters, digits, - and _", w.value)
		case "ready":
			block.Ready, hasReady = w.value, true
			check(w.value != "", `ready="TEXT" needs the text that shows that the process is ready`)
		case "stop":
			block.Stop = w.value
			check(backgroundName.MatchString(w.value), "stop=%s: write the name of a background process", w.value)
		case "expect":
			block.ExpectError = true
			check(w.value == "error", "expect=%s: only expect=error is allowed", w.value)
		case "timeout":
			timeout, err := time.ParseDuration(w.value)
			block.Timeout = timeout
			check(err == nil && timeout > 0, "timeout=%s: write a duration above 0, such as 30s or 5m", w.value)
		case "cluster":
			block.Clusters = strings.Split(w.value, ",")
			check(knownClusters(block.Clusters), "cluster=%s: write one or more of %s, separated by commas", w.value, strings.Join(providers.All(), ", "))
		case "cleanup":
			block.Cleanup = true
			check(!w.hasValue, "cleanup takes no value")
		case "makes":
			block.Makes = strings.Fields(w.value)
			check(len(block.Makes) > 0, `makes="KIND/NAME …" needs an object`)
			for _, object := range block.Makes {
				check(madeObject.MatchString(object), "makes: %q: write objects as KIND/NAME, such as namespace/chapter-1, separated by spaces", object)
			}
		case "own":
			block.Own = w.value
			check(w.value != "", `own="COMMAND" needs a command`)
		default:
			check(false, "unknown word %s: a console fence accepts %s", w.key, consoleWords)
		}
	}
	check(len(block.Makes) == 0 || block.Cleanup, `makes="KIND/NAME …" needs cleanup`)
	if block.Background == "" {
		check(!hasReady, `ready="TEXT" needs background=NAME`)
		return
	}
	check(hasReady, `background=%s needs ready="TEXT", the output that shows that the process is ready`, block.Background)
	check(!block.ExpectError, "expect=error can't be combined with background=%s", block.Background)
	check(!block.Cleanup, "cleanup can't be combined with background=%s: the process is stopped at the end anyway", block.Background)
}

// knownClusters reports whether each name is a kind of cluster and occurs only once.
func knownClusters(names []string) bool {
	for i, name := range names {
		if !slices.Contains(providers.All(), name) || slices.Contains(names[:i], name) {
			return false
		}
	}
	return true
}
