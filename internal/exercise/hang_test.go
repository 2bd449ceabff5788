package exercise

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/internal/repo"
)

// hangs are function bodies for add that never return, with the line of toy.go that the check reports.
var hangs = map[string]struct{ body, line string }{
	"a wait for nothing":    {"\tselect {}\n", "6"},
	"an endless loop":       {"\tfor {\n\t}\n", "6"},
	"a loop in a goroutine": {"\tdone := make(chan int)\n\tgo func() {\n\t\tfor {\n\t\t\ta++\n\t\t}\n\t}()\n\treturn <-done\n", "12"},
	"a deadlock":            {"\tvar mu sync.Mutex\n\tmu.Lock()\n\tmu.Lock()\n\treturn a + b\n", "10"},
}

// shortTimeouts makes tests and specs time out after a second.
func shortTimeouts(t *testing.T) {
	t.Helper()
	tests, specs := goTestTimeout, specTimeout
	goTestTimeout, specTimeout = time.Second, time.Second
	t.Cleanup(func() { goTestTimeout, specTimeout = tests, specs })
}

// expectHang replaces the body of add in the copy. It expects the check to end and to report where add hangs.
func (c *Copy) expectHang(t *testing.T, body, line string) {
	t.Helper()
	c.edit(t, "toy.go", addStub, body)
	if strings.Contains(body, "sync.") {
		c.edit(t, "toy.go", "package toy\n", "package toy\n\nimport \"sync\"\n")
	}
	finding, err := c.CheckStep(t.Context(), "1.1")
	if err != nil {
		t.Fatal(err)
	}
	if finding == nil || !strings.HasPrefix(finding.Open, "work/01-toy/toy.go:"+line) ||
		!strings.Contains(finding.Found, "it does not end: see "+finding.Open) || !strings.Contains(finding.Found, "01-toy.add") {
		t.Fatalf("expected line %s\nfound %+v", line, finding)
	}
}

func TestAHangInATestIsFound(t *testing.T) {
	shortTimeouts(t)
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) { started(t).expectHang(t, hang.body, hang.line) })
	}
}

func TestAHangInASpecIsFound(t *testing.T) {
	shortTimeouts(t)
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) { startedWithSpecs(t).expectHang(t, hang.body, hang.line) })
	}
}

// TestATestIsRunAgainIfItsStackIsLost uses code that hangs, except in its first run. That run ends with the text that
// Go may print on a busy machine instead of a stack.
func TestATestIsRunAgainIfItsStackIsLost(t *testing.T) {
	shortTimeouts(t)
	own := started(t)
	own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport \"os\"\n")
	first := filepath.Join(t.TempDir(), "first")
	own.expectHang(t, "\tif os.Mkdir("+strconv.Quote(first)+", 0o700) == nil {\n"+
		"\t\tprintln(\"\tgoroutine running on other thread; stack unavailable\")\n\t\tos.Exit(2)\n\t}\n\tselect {}\n", "12")
}

// TestAHangIsFoundWhileASpecWaits uses a spec that stops waiting for add after a time limit, as the test kit's specs
// stop waiting for an operator.
func TestAHangIsFoundWhileASpecWaits(t *testing.T) {
	first, next := firstLook, nextLook
	firstLook, nextLook = 200*time.Millisecond, 200*time.Millisecond
	t.Cleanup(func() { firstLook, nextLook = first, next })
	for name, test := range map[string]struct{ body, open, found string }{
		"an endless loop": {"\tfor {\n\t}\n", "work/01-toy/toy.go:6", "did not leave 01-toy.add"},
		"a deadlock":      {"\tvar mu sync.Mutex\n\tmu.Lock()\n\tmu.Lock()\n\treturn a + b\n", "work/01-toy/toy.go:10", "(sync.Mutex.Lock"},
		"a loop that mostly sleeps": {
			"\tfor {\n\t\ttime.Sleep(10*time.Millisecond)\n\t}\n", "work/01-toy/toy.go:6", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := startedWithSpecs(t)
			own.edit(t, "toy.go", addStub, test.body)
			for _, name := range []string{"sync", "time"} {
				if strings.Contains(test.body, name+".") {
					own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport \""+name+"\"\n")
				}
			}
			own.Steps[0].Checks[0].Specs = "adds in another goroutine"
			finding, err := own.CheckStep(t.Context(), "1.1")
			if err != nil {
				t.Fatal(err)
			}
			if finding == nil || finding.Early || !strings.HasPrefix(finding.Open, test.open) ||
				!strings.Contains(finding.Found, test.found) || strings.Contains(finding.Found, "meanwhile") != (test.found != "") {
				t.Errorf("expected %q at %s\nfound %+v", test.found, test.open, finding)
			}
		})
	}
}

func TestAGoroutineIsStuckIfItIsAtWorkInMostReportsOfASpec(t *testing.T) {
	own := newToy(t).Copy(noMake)
	// report returns a progress report with a goroutine in add for each of the states.
	report := func(states ...string) progressReport {
		var report progressReport
		for _, state := range states {
			report.Goroutines = append(report.Goroutines, goroutine{state, []call{{"time.Sleep", "/go/time.go", 1}, {"toy.add", own.Path + "/toy.go", 7}}})
		}
		return report
	}
	for name, test := range map[string]struct {
		progress [][]progressReport
		stuck    bool
	}{
		"in all reports":                         {[][]progressReport{{report("running"), report("runnable")}}, true},
		"in most reports":                        {[][]progressReport{{report(), report("running"), report("sleep", "runnable")}}, true},
		"in the second failed spec":              {[][]progressReport{{report("sleep")}, {report("running"), report("running")}}, true},
		"asleep in most reports":                 {[][]progressReport{{report("runnable"), report("sleep"), report("runnable"), report("sleep")}}, false},
		"several in the only report":             {[][]progressReport{{report("running", "runnable")}}, false},
		"in one report of each of several specs": {[][]progressReport{{report("running"), report("sleep")}, {report("running"), report("sleep")}}, false},
	} {
		place, description := own.stuck(test.progress)
		if (place == "work/01-toy/toy.go:7") != test.stuck || (description == "") == test.stuck {
			t.Errorf("%s: expected stuck=%t\nfound the place %q and the description %q", name, test.stuck, place, description)
		}
	}
}

// startedWithSpecs returns a copy of the toy stage whose first step is checked by a spec.
func startedWithSpecs(t *testing.T) *Copy {
	t.Helper()
	stage := newToy(t)
	checkout, err := repo.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(checkout.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		own := strings.Replace(string(content), "module example.com/operator-workshop\n", "module example.com/operator-workshop/01-toy\n", 1)
		if err := os.WriteFile(filepath.Join(stage.Dir, name), []byte(own), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(stage.Dir, "suite_test.go"), []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	stage.Steps[0].Checks = []Check{{Run: "^TestSpecs$", Specs: "adds two numbers"}}
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	return own
}

const suite = `package toy

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestSpecs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "toy")
}

var _ = It("adds two numbers", func() { Expect(add(1, 1)).To(Equal(2)) })

var _ = It("adds in another goroutine", func() {
	done := make(chan int)
	go func() { done <- add(1, 1) }()
	Eventually(done).WithTimeout(2 * time.Second).Should(Receive(Equal(2)))
})
`
