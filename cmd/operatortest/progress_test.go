package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/report"
)

func TestProgress(t *testing.T) {
	const (
		ended   = "drift             passed            0 trials          \n"
		first   = "crash             …                 0 trials done, 1 running\nall               …                 0 trials done, 1 running\n"
		second  = "(shared)          …                 0 trials done, 1 running\ncrash             …                 0 trials done, 1 running\nall               …                 0 trials done, 2 running\n"
		third   = "(shared)          …                 0 trials done, 1 running\nall               …                 1 trial done, 1 running\n"
		up2     = "\x1b[2A\x1b[J"
		up3     = "\x1b[3A\x1b[J"
		allLive = first + up2 + second + up3 + third + up2 + ended + third + up2
	)
	for name, test := range map[string]struct {
		live bool
		want string
	}{
		"on a terminal": {true, allLive},
		"elsewhere":     {false, ended},
	} {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer
			shown := newProgress(&output, test.live)
			shown.trial("crash", false)
			shown.trial("", false)
			shown.trial("crash", true)
			shown.behaviour(report.Behaviour{Name: "drift", Result: report.Passed})
			shown.end()
			NewWithT(t).Expect(output.String()).To(Equal(test.want))
		})
	}
}
