package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The labels of the bundle's image say which folder contains what, and name the package and its channels.
// metadata/annotations.yaml repeats them, and OLM goes by that file if the two differ. The labels let tools see what
// the image is without downloading its content.
const (
	bundleLabel    = "operators.operatorframework.io.bundle."
	scorecardLabel = "operators.operatorframework.io.test."
)

type label struct{ key, value string }

type labels struct {
	bundle []label
	// scorecard is empty in a bundle without tests.
	scorecard []label
}

func makeLabels(packageName string, chosen options, scorecard bool) labels {
	made := labels{bundle: []label{
		{bundleLabel + "mediatype.v1", "registry+v1"},
		{bundleLabel + "manifests.v1", "manifests/"},
		{bundleLabel + "metadata.v1", "metadata/"},
		{bundleLabel + "package.v1", packageName},
		{bundleLabel + "channels.v1", strings.Join(chosen.channels, ",")},
	}}
	if chosen.defaultChannel != "" {
		made.bundle = append(made.bundle, label{bundleLabel + "channel.default.v1", chosen.defaultChannel})
	}
	if scorecard {
		made.scorecard = []label{
			{scorecardLabel + "mediatype.v1", "scorecard+v1"},
			{scorecardLabel + "config.v1", "tests/scorecard/"},
		}
	}
	return made
}

func (l labels) annotations() []byte {
	var text bytes.Buffer
	fmt.Fprintln(&text, "annotations:")
	l.list(&text, "  ", "%s: %s\n")
	return text.Bytes()
}

func (l labels) dockerfile() []byte {
	var text bytes.Buffer
	fmt.Fprint(&text, "# This image contains only files, and no program.\nFROM scratch\n\n")
	l.list(&text, "", "LABEL %s=%s\n")
	fmt.Fprintf(&text, "\nCOPY %[1]s/manifests /manifests/\nCOPY %[1]s/metadata /metadata/\n", bundleFolder)
	if len(l.scorecard) > 0 {
		fmt.Fprintf(&text, "COPY %s/tests/scorecard /tests/scorecard/\n", bundleFolder)
	}
	return text.Bytes()
}

// list writes comments, and a line in the given format for each label.
func (l labels) list(text *bytes.Buffer, indent, format string) {
	fmt.Fprintln(text, indent+"# What each folder contains, and which channels offer the release.")
	for _, label := range l.bundle {
		fmt.Fprintf(text, indent+format, label.key, label.value)
	}
	if len(l.scorecard) > 0 {
		fmt.Fprintln(text, "\n"+indent+"# The tests that `operator-sdk scorecard` runs.")
	}
	for _, label := range l.scorecard {
		fmt.Fprintf(text, indent+format, label.key, label.value)
	}
}
