package play

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOutputLinesAreWithoutColoursAndBlankLinesAtTheEnd(t *testing.T) {
	g := NewWithT(t)
	g.Expect(outputLines("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1bM\r\n\nend\n \n\n")).To(Equal([]string{"red x", "", "end"}))
	g.Expect(outputLines("\n\n")).To(BeEmpty())
}

func TestOutputLinesLeaveOutWhatKubectlLogsAboutEndedWatches(t *testing.T) {
	g := NewWithT(t)
	ended := `I1125 04:58:43.428755   16461 reflector.go:664] "Warning: watch ended with error" reflector="k8s.io/client-go@v0.37.1/tools/cache/reflector.go:343" type="*unstructured.Unstructured" err="an error on the server (\"unable to decode an event from the watch stream: context canceled\") has prevented the request from succeeding"`
	g.Expect(outputLines(ended + "\ncondition met\n")).To(Equal([]string{"condition met"}))
	refused := strings.Replace(ended, "context canceled", "connection refused", 1)
	g.Expect(outputLines(refused + "\ncondition met\n")).To(Equal([]string{refused, "condition met"}))
}

func TestAFailureShowsTheLinesAroundTheMark(t *testing.T) {
	g := NewWithT(t)
	many := strings.Split(strings.TrimSuffix(strings.Repeat("x\n", 100), "\n"), "\n")
	many[50] = "here"
	text := section("got", many, 50)
	g.Expect(text).To(HavePrefix("got:\n    (30 lines before)\n    x\n"))
	g.Expect(text).To(ContainSubstring("\n    x\n  > here\n    x\n"))
	g.Expect(text).To(HaveSuffix("\n    x\n    (30 lines after)"))
	g.Expect(section("output", many, unmarked)).To(HavePrefix("output:\n    (60 lines before)\n    x\n"))
	g.Expect(section("output", nil, unmarked)).To(Equal("output: nothing"))
}
