// Package quote quotes the arguments of commands, for messages and for shell scripts.
package quote

import "strings"

// special contains the characters that have a special meaning to a shell, at least in some places.
const special = " \t\n'\"$`\\|&;<>(){}*?[]#~!^"

// Args returns arguments as a learner would type them in a shell, with quotes only where they may be needed.
func Args(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if arg == "" || strings.ContainsAny(arg, special) {
			words[i] = Word(arg)
		}
	}
	return strings.Join(words, " ")
}

// Word quotes a string, so that a shell reads it as one word.
func Word(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
