package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// measurementTimeout bounds a whole measurement with few resources, which takes about 10 s.
const measurementTimeout = 2 * time.Minute

// testStage returns the path of a copy of testdata/stage that has a program.
func testStage(t *testing.T) string {
	t.Helper()
	stage := filepath.Join(t.TempDir(), "gauges")
	if err := os.CopyFS(stage, os.DirFS("testdata/stage")); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", operatorVariable, os.Args[0])
	if err := os.Mkdir(filepath.Join(stage, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stage, "bin", "manager"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return stage
}

func TestMeasure(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), measurementTimeout)
	defer cancel()
	log := &bytes.Buffer{}
	measurement := Measurement{Stage: testStage(t), Idle: time.Second, Log: log, Out: log, calm: time.Second}
	plan, err := readPlan(measurement.Stage)
	g.Expect(err).NotTo(HaveOccurred())

	found, err := measurement.measure(ctx, plan, filepath.Join(measurement.Stage, "bin", "manager"), 5)
	g.Expect(err).NotTo(HaveOccurred(), "see internal/load/measurement.go; it logged:\n%s", log)
	writes := found.converge.writes + found.settle.writes
	g.Expect(writes).To(Equal(11), "there must be two writes for each of 5 gauges and one that is refused: audit.go reads them, tally.go counts them")
	g.Expect(found.converge.conflicts+found.settle.conflicts).To(Equal(1), "the controller provokes one conflict")
	g.Expect(found.converge.refusals+found.settle.refusals).To(BeZero(), "ground.go grants the roles")
	g.Expect(found.converge.kinds).To(HaveKey("update gauges.test.example.com/status"))
	g.Expect(found.latencies).To(HaveLen(5))
	g.Expect(found.latencies).To(HaveEach(And(BeNumerically(">", 0), BeNumerically("<=", found.with[0]))))
	g.Expect(found.idle.kinds).To(BeEmpty(), "the controller must send no requests while there is nothing to do")
	g.Expect(found.restart.watches).To(Equal(1), "a new process must open its watch once")
	g.Expect(found.restart.writes).To(BeZero(), "a new process must write nothing, because there is nothing to do")
	g.Expect(found.with).To(And(HaveLen(2), HaveEach(BeNumerically(">", 0))), "all gauges must converge at the beginning and again at the end")
	g.Expect(found.baseline).To(And(HaveLen(baselineRuns), HaveEach(BeNumerically(">", 0))), "see compare.go")
	g.Expect(log.String()).To(ContainSubstring("creating their 5 children without an operator"), "see children.go")
	g.Expect(found.peak).To(BeNumerically("~", 60e6, 55e6), "the peak must be that of one small Go program, in bytes: see memory_linux.go")
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		wanted        string
	}{
		"a program that ends immediately": {
			file: "bin/manager", content: "#!/bin/sh\necho no such flag\nexit 2\n",
			wanted: "with --resources=1: the controller ended on its own (exit status 2); its last lines:\nno such flag",
		},
		"a stage that does not build": {
			file: "Makefile", content: "build:\n\tfalse\n",
			wanted: "build: exit status 2",
		},
		"a field that the definition does not have": {
			file: "config/bench/load.yaml",
			content: "idealWrites: 1\nresource: {apiVersion: test.example.com/v1, kind: Gauge, " +
				"metadata: {name: gauge-NUMBER}, spec: {labels: x}}\n",
			wanted: `the API server refuses the resource of config/bench/load.yaml: Gauge in version "v1" cannot be handled as a Gauge: strict decoding error: unknown field "spec.labels"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(t.Context(), measurementTimeout)
			defer cancel()
			stage, log := testStage(t), &bytes.Buffer{}
			g.Expect(os.WriteFile(filepath.Join(stage, test.file), []byte(test.content), 0o755)).To(Succeed())
			err := Measurement{Stage: stage, Resources: []int{1}, Idle: time.Second, Log: log, Out: log}.Run(ctx)
			g.Expect(err).To(MatchError(ContainSubstring(test.wanted)))
		})
	}
}

func TestRunLeavesOtherClustersAlone(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	err := Measurement{Stage: "testdata/stage"}.Run(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unset USE_EXISTING_CLUSTER")))
}

func TestRunEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	log := writerFunc(func(text []byte) (int, error) {
		if bytes.Contains(text, []byte("idling")) {
			cancel()
		}
		return len(text), nil
	})
	err := Measurement{Stage: testStage(t), Resources: []int{1}, Idle: time.Hour, Log: log, Out: log, calm: time.Millisecond}.Run(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
	left, err := os.ReadDir(scratch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty(), "an interrupted measurement must remove its files: see close in ground.go")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
