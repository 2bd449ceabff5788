package greeting

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestText(t *testing.T) {
	tests := map[string]struct {
		name, language string
		want           string
	}{
		"English":                           {"Ada", "en", "Hello, Ada!"},
		"German":                            {"Ada", "de", "Hallo, Ada!"},
		"French":                            {"Ada", "fr", "Bonjour, Ada!"},
		"English for an unknown language":   {"Ada", "tlh", "Hello, Ada!"},
		"spaces around a name are dropped":  {" Ada ", "en", "Hello, Ada!"},
		"the spaces within a name are kept": {"Ada Lovelace", "en", "Hello, Ada Lovelace!"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Text(test.name, test.language)).To(Equal(test.want))
		})
	}
}
