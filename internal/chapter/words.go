package chapter

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of cluster a block can be marked for with cluster=.
const (
	ClusterEmbedded = "embedded"
	ClusterKind     = "kind"
	ClusterCurrent  = "current"
)

var clusters = []string{ClusterEmbedded, ClusterKind, ClusterCurrent}

// consoleWords and snippetWords say what may follow the language of a fence; they are quoted in messages.
const (
	consoleWords = `background=NAME ready="TEXT", stop=NAME, expect=error, timeout=DURATION, cluster=NAME[,NAME], cleanup and makes="KIND/NAME …"`
	goWords      = "file=PATH and symbol=NAME"
	yamlWords    = "file=PATH and key=KEY"
	otherWords   = "file=PATH"
)

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

// splitInfo splits an info string into the language and the words behind it.
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
		w := word{key: m[1], value: m[2], hasValue: strings.HasPrefix(rest[len(m[1]):], "=")}
		if strings.HasPrefix(w.value, `"`) {
			w.value = strings.Trim(w.value, `"`)
		}
		if slices.ContainsFunc(words, func(other word) bool { return other.key == w.key }) {
			return language, words, fmt.Errorf("the word %s is given twice", w.key)
		}
		words = append(words, w)
		rest = rest[len(m[0]):]
	}
	return language, words, nil
}

// parseBlockWords reads the words of a console fence into block and reports every one that is wrong.
func parseBlockWords(words []word, block *Block, problems *problemList) {
	report := func(format string, args ...any) { problems.add(block.Line, format, args...) }
	hasReady := false
	for _, w := range words {
		switch w.key {
		case "background":
			block.Background = w.value
			if !backgroundName.MatchString(w.value) {
				report("background=%s: a name of letters, digits, - and _ is needed", w.value)
			}
		case "ready":
			hasReady = true
			block.Ready = w.value
			if w.value == "" {
				report(`ready="TEXT" needs the text that tells that the process is ready`)
			}
		case "stop":
			block.Stop = w.value
			if !backgroundName.MatchString(w.value) {
				report("stop=%s: the name of a background process is needed", w.value)
			}
		case "expect":
			block.ExpectError = true
			if w.value != "error" {
				report("expect=%s: only expect=error is known", w.value)
			}
		case "timeout":
			block.Timeout = parseTimeout(w.value, report)
		case "cluster":
			block.Clusters = parseClusters(w.value, report)
		case "cleanup":
			block.Cleanup = true
			if w.hasValue {
				report("cleanup takes no value")
			}
		case "makes":
			block.Makes = parseMakes(w.value, report)
		default:
			report("unknown word %s: a console fence knows %s", w.key, consoleWords)
		}
	}
	checkBlockWords(block, hasReady, report)
}

// checkBlockWords reports words that do not go together.
func checkBlockWords(block *Block, hasReady bool, report func(string, ...any)) {
	if len(block.Makes) > 0 && !block.Cleanup {
		report(`makes="KIND/NAME …" goes with cleanup only`)
	}
	if block.Background == "" {
		if hasReady {
			report(`ready="TEXT" goes with background=NAME only`)
		}
		return
	}
	if !hasReady {
		report(`background=%s needs ready="TEXT", the output that tells that the process is ready`, block.Background)
	}
	if block.ExpectError {
		report("expect=error does not go with background=%s", block.Background)
	}
	if block.Cleanup {
		report("cleanup does not go with background=%s: it is stopped at the end anyway", block.Background)
	}
}

func parseTimeout(value string, report func(string, ...any)) time.Duration {
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		report("timeout=%s: a duration above 0 such as 30s or 5m is needed", value)
		return 0
	}
	return timeout
}

func parseMakes(value string, report func(string, ...any)) []string {
	objects := strings.Fields(value)
	for _, object := range objects {
		if !madeObject.MatchString(object) {
			report("makes: %q: objects are needed as KIND/NAME, such as namespace/chapter-1, with spaces between them", object)
			return nil
		}
	}
	if len(objects) == 0 {
		report(`makes="KIND/NAME …" needs an object`)
	}
	return objects
}

func parseClusters(value string, report func(string, ...any)) []string {
	names := strings.Split(value, ",")
	for i, name := range names {
		if !slices.Contains(clusters, name) || slices.Contains(names[:i], name) {
			report("cluster=%s: one or more of %s are needed, separated by commas", value, strings.Join(clusters, ", "))
			return nil
		}
	}
	return names
}

// parseExit reads the N of a "? N" line.
func parseExit(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 255 {
		return 0, fmt.Errorf("? %s: an exit status from 0 to 255 is needed; for output that starts with ?, write [..]", text)
	}
	return n, nil
}
