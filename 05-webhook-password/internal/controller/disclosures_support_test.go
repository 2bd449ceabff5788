package controller_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// minSearched is the minimum length, in bytes, of a value to search for. A shorter one may occur by chance.
	minSearched = 12
	// windowLength is the length, in bytes, of the beginning of a needle's form, by which search looks up the needle.
	windowLength = 8
)

// The places where the suite searches for secrets that must not be there.
const (
	inLog      = "the log"
	inEvent    = "an event"
	inPassword = "a Password"
	inMetadata = "the metadata of a Secret"
	inMetrics  = "the metrics"
)

// disclosures collects the strings found in these places, and the secrets to search for in them. The zero value is
// ready to use.
type disclosures struct {
	mu sync.Mutex
	// texts maps each place to the strings recorded there.
	texts map[string][]string
	// secrets maps the value of each secret to a description of it.
	secrets map[string]string
}

// disclosed covers the whole suite, because the shared tests run operators, too.
var disclosed disclosures

func (d *disclosures) note(where, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts == nil {
		d.texts = map[string][]string{}
	}
	d.texts[where] = append(d.texts[where], text)
}

func (d *disclosures) keep(value []byte, description string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secrets == nil {
		d.secrets = map[string]string{}
	}
	if len(value) > 0 {
		d.secrets[string(value)] = description
	}
}

// knows reports whether the value was recorded as a secret.
func (d *disclosures) knows(value []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.secrets[string(value)] != ""
}

// about returns the number of strings from a place that contain the words.
func (d *disclosures) about(where, words string) (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range d.texts[where] {
		if strings.Contains(text, words) {
			count++
		}
	}
	return count
}

// sizes returns the number of strings by place, and the number of secrets.
func (d *disclosures) sizes() (texts map[string]int, secrets int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts = map[string]int{}
	for where := range d.texts {
		texts[where] = len(d.texts[where])
	}
	return texts, len(d.secrets)
}

// needle is one way to print a secret value.
type needle struct{ form, value string }

// leaks reports every secret that occurs in a string, in any of the forms that formsOf returns. The report about a secret
// does not contain its value.
func (d *disclosures) leaks() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	needles := map[string][]needle{}
	for value := range d.secrets {
		for _, form := range formsOf(value) {
			needles[form[:windowLength]] = append(needles[form[:windowLength]], needle{form, value})
		}
	}
	var found []string
	for where, texts := range d.texts {
		for _, text := range texts {
			for _, value := range search(text, needles) {
				found = append(found, fmt.Sprintf("%s is in %s: %s", d.secrets[value], where, hideAll(text, value)))
			}
		}
	}
	return found
}

// search returns the values of the needles that are in the text. For speed, needles are keyed
// by their beginning: there are thousands of them, and megabytes of text.
func search(text string, needles map[string][]needle) (values []string) {
	for i := 0; i+windowLength <= len(text); i++ {
		for _, candidate := range needles[text[i:i+windowLength]] {
			if strings.HasPrefix(text[i:], candidate.form) {
				values = append(values, candidate.value)
			}
		}
	}
	return values
}

// formsOf returns the ways in which Go, JSON and Kubernetes print a value. It returns none for a value that is too
// short to search for.
func formsOf(value string) []string {
	if len(value) < minSearched {
		return nil
	}
	forms := []string{
		value,
		withoutQuotes(strconv.Quote(value)),
		withoutQuotes(asJSON(value)),
		base64.RawStdEncoding.EncodeToString([]byte(value)),
		base64.RawURLEncoding.EncodeToString([]byte(value)),
		hex.EncodeToString([]byte(value)),
		strings.Trim(fmt.Sprintf("%d", []byte(value)), "[]"),
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

func withoutQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

func hideAll(text, value string) string {
	for _, form := range formsOf(value) {
		text = strings.ReplaceAll(text, form, "<here>")
	}
	return text
}

func asJSON(object any) string {
	content, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
