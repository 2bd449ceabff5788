package config

import (
	"reflect"
	"regexp"
	"strings"
)

// goNames matches the words in hints that only a Go suite uses: fields of operatortest.Operator, Child and RunOptions,
// and the command that runs one behaviour.
var goNames = regexp.MustCompile(`\b[oO]perator\.([A-Z]\w*)|\bChild\.(Drift|Foreign|Labels|Applied|Generated|Unowned|Retained)\b|\bRunOptions\.Namespace\b|go test -ginkgo\.label-filter=(\S+)`)

// Words returns a function that replaces Go names in a string with the keys of operatortest.yaml and the command's flags. run
// is the command that tries the operator, such as "operatortest run -f operatortest.yaml".
func Words(run string) func(text string) string {
	return func(text string) string { return words(run, text) }
}

func words(run, text string) string {
	return goNames.ReplaceAllStringFunc(text, func(name string) string {
		parts := goNames.FindStringSubmatch(name)
		switch field, known := keys[parts[1]]; {
		case known:
			return field
		case parts[2] != "":
			return strings.ToLower(parts[2]) + " of the child"
		case parts[3] != "":
			return run + " --only=" + parts[3]
		case strings.HasPrefix(name, "RunOptions."):
			return "{{.Namespace}}, in command or env"
		}
		return name
	})
}

// keys maps the names of the fields of File to the keys in operatortest.yaml.
var keys = keysOf(reflect.TypeFor[File]())

func keysOf(file reflect.Type) map[string]string {
	made := map[string]string{}
	for field := range file.Fields() {
		made[field.Name], _, _ = strings.Cut(field.Tag.Get("json"), ",")
	}
	return made
}
