package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// avoided gives authors advice about words and phrases that belittle readers or make them stumble.
var avoided = map[string]string{
	"all it holds":    "write: and everything in it",
	"as one would":    "say who does what",
	"belongs into":    "write: belongs in",
	"comes up":        "name what happens: starts, occurs, is asked",
	"ends by":         "write: ends when",
	"in order to":     "write: to",
	"in the words of": "quote it, or say it",
	"looks whether":   "write: checks whether",
	"mend":            "write: fix",
	"mended":          "write: fixed",
	"mends":           "write: fixes",
	"nobody":          "name the person or the program that doesn't",
	"note that":       "leave it out",
	"obstacle":        "write: what blocks it, or name the error",
	"obstacles":       "write: what blocks it, or name the errors",
	"obviously":       "leave it out: what is obvious to you may not be to a reader",
	"of course":       "leave it out: what is obvious to you may not be to a reader",
	"says so":         "say what it says",
	"simply":          "leave it out: it isn't simple to someone who is learning it",
	"somebody":        "name the person or the program",
	"strikes":         "write: failures, or the failure threshold",
	"trivial":         "leave it out: it isn't to someone who is learning it",
	"unsettled":       "say what has yet to happen",
	"utilize":         "write: use",
	"what is left of": "write: the rest of, or name it",
	"whoever":         "give the sentence a subject: anyone who, a user who",
}

// phrasesPattern returns a pattern that matches all avoided phrases, even across the end of a line.
func phrasesPattern() *regexp.Regexp {
	phrases := make([]string, 0, len(avoided))
	for phrase := range avoided {
		phrases = append(phrases, strings.ReplaceAll(phrase, " ", `\s+`))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(phrases, "|") + `)\b`)
}

// reportPhrases calls report for each avoided phrase in a string, with the phrase's byte offset and a message.
func (c *Checker) reportPhrases(text string, report func(at int, message string)) {
	for _, found := range c.phrases.FindAllStringIndex(text, -1) {
		phrase := strings.Join(strings.Fields(text[found[0]:found[1]]), " ")
		report(found[0], fmt.Sprintf("%q: %s", phrase, avoided[strings.ToLower(phrase)]))
	}
}
