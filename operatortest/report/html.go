package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// WriteHTML writes the report as one self-contained page.
func (r *Report) WriteHTML(to io.Writer) error { return pageTemplate.Execute(to, r) }

// reasons lists what was left out, and why, in one line.
func reasons(leftOut map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(leftOut)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", name, leftOut[name]))
	}
	return strings.Join(parts, ", ")
}
