package exercise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/quote"
)

var (
	// goTestTimeout limits Go tests, so that learners don't wait long for an endless loop.
	goTestTimeout = 20 * time.Second
	// specTimeout limits Ginkgo specs, which need a control plane.
	specTimeout = 3 * time.Minute
)

// firstLook is how long a spec runs before Ginkgo reports where the goroutines are, and nextLook is the interval
// between further reports.
var firstLook, nextLook = 6 * time.Second, 3 * time.Second

// waitTimeout is how long the test kit waits for something that the learner's operator may never do.
const waitTimeout = 15 * time.Second

// stackLost is the text that Go prints instead of a stack if it can't stop a goroutine in time, which happens on a busy
// machine. mostRuns is how many times tests run if their stack is lost each time. After that, the learner gets a
// finding that doesn't say where the tests hang.
const (
	stackLost = "goroutine running on other thread; stack unavailable"
	mostRuns  = 3
)

// outcome is the result of a check's tests.
type outcome struct {
	// command is the command that repeats the run in the copy's folder.
	command string
	// tests are the names of the tests or specs that ran.
	tests []string
	// built is false if the program or its tests do not compile. In that case, output contains the compiler's messages.
	built bool
	// failures are the tests that failed, with their messages.
	failures []testFailure
	// reported means that tests and failures come from the specs' own report, so the process ended normally.
	reported bool
	// progress says where goroutines were while each failed spec was running.
	progress [][]progressReport
	// output is everything that was printed.
	output string
	err    error
}

type testFailure struct{ name, message string }

// goTest runs a check in the copy. The overlay file names the tests to use.
func (c *Copy) goTest(ctx context.Context, check Check, overlay string) (outcome, error) {
	pkg := cmp.Or(check.Package, ".")
	var specs []string
	if check.Label != "" {
		specs = append(specs, "-ginkgo.label-filter="+check.Label)
	}
	if check.Specs != "" {
		specs = append(specs, "-ginkgo.focus="+check.Specs)
	}
	shown := append([]string{"test", pkg, "-run=" + check.Run}, specs...)
	found := outcome{command: "go " + quote.Args(shown), built: true}
	binary, message, err := c.compile(ctx, pkg, overlay)
	if err != nil {
		return outcome{}, err
	}
	if message != "" {
		found.built, found.output = false, message
		return found, nil
	}
	timeout := goTestTimeout
	report := ""
	if len(specs) > 0 {
		timeout, report = specTimeout, filepath.Join(filepath.Dir(binary), "specs.json")
		if err := os.RemoveAll(report); err != nil {
			return outcome{}, fmt.Errorf("remove the report of the previous specs: %w", err)
		}
		specs = append(specs, "-ginkgo.json-report="+report, "-ginkgo.poll-progress-after="+firstLook.String(), "-ginkgo.poll-progress-interval="+nextLook.String())
	}
	args := append([]string{"-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + timeout.String(), "-test.run=" + check.Run}, specs...)
	output, failed := c.runTests(ctx, binary, pkg, args)
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		return outcome{}, fmt.Errorf("run the tests of %s: %w", pkg, failed)
	}
	convert := exec.CommandContext(ctx, "go", "tool", "test2json")
	convert.Dir, convert.Stdin = c.Path, bytes.NewReader(output)
	events, err := convert.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("read what the tests of %s printed: %w", pkg, err)
	}
	found.read(events)
	found.err = failed
	if report != "" {
		found.readSpecs(report)
	}
	if failed != nil {
		return found, blameMachine(found.output)
	}
	return found, nil
}

// runTests runs a package's test binary. If Go lost the stack that says where the tests hang, runTests runs the binary
// again, at most mostRuns times in all.
func (c *Copy) runTests(ctx context.Context, binary, pkg string, args []string) (output []byte, err error) {
	for range mostRuns {
		command := exec.CommandContext(ctx, binary, args...)
		command.Dir = filepath.Join(c.Path, filepath.FromSlash(pkg))
		command.Env = append(os.Environ(), "OPERATORTEST_TIMEOUT="+waitTimeout.String(), "OPERATORTEST_FIRST_FAILURE=yes", "OPERATORTEST_SCRATCH="+c.scratch)
		output, err = command.CombinedOutput()
		if place, _ := c.ended(string(output)); ctx.Err() != nil || place != "" || !bytes.Contains(output, []byte(stackLost)) {
			break
		}
	}
	return output, err
}

// Environment returns the environment for commands that compile or generate code. With it, Go's tools hardly collect
// garbage until they use 1 GiB, which saves more than a fifth of their CPU time. The caller's own settings take precedence.
func Environment() []string { return append([]string{"GOGC=1600", "GOMEMLIMIT=1GiB"}, os.Environ()...) }

// unoptimized makes the go command compile the copy's packages without optimizations. That is faster, and the stack of a
// hang then shows the right lines, even in an empty loop.
const unoptimized = "-gcflags=./...=-N -l"

// compile builds a package's test binary, or returns the compiler's messages if the package does not compile. Go does
// not rebuild an up-to-date binary, so a step's checks of one package compile it only once.
func (c *Copy) compile(ctx context.Context, pkg, overlay string) (binary, message string, err error) {
	binary = filepath.Join(filepath.Dir(overlay), "binaries", filepath.FromSlash(pkg), "course.test")
	// The linker is faster without debug information and a symbol table. Stacks don't need them.
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", unoptimized, "-ldflags=-s", "-overlay="+overlay, "-o="+binary, pkg)
	command.Dir, command.Env = c.Path, append(Environment(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return "", string(output), blameMachine(string(output))
	case err != nil:
		return "", "", fmt.Errorf("run go test -c: %w", err)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", "", fmt.Errorf("%s has no tests: the check of this step is wrong; please report it", pkg)
	}
	return binary, "", nil
}

// build compiles the copy. It returns the compiler's messages, or "" if there are none.
func (c *Copy) build(ctx context.Context) (message string, err error) {
	// Unlike go build, this doesn't link the programs. Linking takes longer than compiling what has changed.
	command := exec.CommandContext(ctx, "go", "list", "-export", unoptimized, "./...")
	command.Dir, command.Env = c.Path, append(Environment(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	err = command.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return compilerLines(stderr.String()), blameMachine(stderr.String())
	}
	if err != nil {
		return "", fmt.Errorf("run go list: %w", err)
	}
	return "", nil
}

// event is a line of `go test -json`. See `go doc test2json`.
type event struct{ Action, Test, Output string }

// read fills in the outcome from the events.
func (o *outcome) read(output []byte) {
	printed := map[string]string{}
	// running lists the tests that have neither passed nor been skipped, in the order in which they began: those that
	// failed, and those whose end was not reported because of a panic or a timeout.
	var running []string
	for line := range bytes.Lines(output) {
		var event event
		if json.Unmarshal(line, &event) != nil {
			o.output += string(line)
			continue
		}
		switch event.Action {
		case "run":
			o.tests = append(o.tests, event.Test)
			running = append(running, event.Test)
		case "pass", "skip":
			running = slices.DeleteFunc(running, func(test string) bool { return test == event.Test })
		case "output":
			o.output += event.Output
			printed[event.Test] += event.Output
		}
	}
	for _, name := range running {
		isPart := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if slices.ContainsFunc(running, isPart) {
			continue
		}
		message := trimmed(printed[name])
		for parent := name; message == "" && strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			message = trimmed(printed[parent])
		}
		o.failures = append(o.failures, testFailure{name: name, message: message})
	}
}

// noise matches lines of go test's output that don't explain a failure.
var noise = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- FAIL|FAIL$|exit status)`)

func trimmed(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		if !noise.MatchString(line) {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// specReport holds the fields of Ginkgo's JSON report that are used here.
type specReport struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		Failure                 struct{ Message string }
		ProgressReports         []progressReport
	}
}

// readSpecs takes the names of the tests, the failures and the progress from the specs' report. If the report is missing
// or incomplete, it changes nothing.
func (o *outcome) readSpecs(path string) {
	content, err := os.ReadFile(path)
	var suites []specReport
	if err != nil || json.Unmarshal(content, &suites) != nil {
		return // the process ended early; its output says why
	}
	o.tests, o.failures, o.reported = nil, nil, true
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.TrimSpace(strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " "))
			// BeforeSuite and AfterSuite have no text.
			name = cmp.Or(name, spec.LeafNodeType)
			switch spec.State {
			case "passed":
				if spec.LeafNodeText != "" {
					o.tests = append(o.tests, name)
				}
			case "failed", "panicked", "timedout", "interrupted", "aborted":
				o.tests = append(o.tests, name)
				o.failures = append(o.failures, testFailure{name: name, message: strings.TrimSpace(spec.Failure.Message)})
				o.progress = append(o.progress, spec.ProgressReports)
			}
		}
	}
}

// writeOverlay writes the course's tests, and a file for go's flag -overlay that makes go use them instead of the
// copy's tests. It returns the path of that file.
func (c *Copy) writeOverlay(done int) (string, error) {
	files, err := c.Form(done)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(c.work(), ".tests", filepath.Base(c.Path))
	tests, replace := tree{}, map[string]string{}
	for name, file := range files {
		if isTest(name) {
			tests[name] = file
			replace[filepath.Join(c.Path, filepath.FromSlash(name))] = filepath.Join(folder, filepath.FromSlash(name))
		}
	}
	// Tests that the course no longer has might declare the same names as its tests, so make Go ignore them.
	hashes, err := c.given()
	if err != nil {
		return "", err
	}
	dropped, err := c.dropped(hashes)
	if err != nil {
		return "", err
	}
	for _, name := range dropped {
		replace[filepath.Join(c.Path, filepath.FromSlash(name))] = ""
	}
	if err := tests.write(folder); err != nil {
		return "", fmt.Errorf("write the tests of the course: %w", err)
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	if err := replaceFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("write the tests of the course: %w", err)
	}
	return path, nil
}
