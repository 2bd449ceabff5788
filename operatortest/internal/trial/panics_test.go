package trial

import (
	"context"
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/operatortest/traffic"
)

const crashOfGo = `starting
panic: assignment to entry in nil map

goroutine 51 gp=0xc0001 m=4 mp=0xc0002 [running]:
main.(*reconciler).sync(...)
	/home/gopher/operator/sync.go:42 +0x1c
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller).Reconcile()
	/home/gopher/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.2/pkg/internal/controller/controller.go:216 +0x1
exit status 2
`

const loggedInJSON = `{"level":"error","msg":"Observed a panic","panic":"boom","stacktrace":"goroutine 9 [running]:\nk8s.io/apimachinery/pkg/util/runtime.logPanic()\n\t/go/pkg/mod/k8s.io/apimachinery@v0.37.2/pkg/util/runtime/runtime.go:139\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:783 +0x132\nexample.com/operator.sync(...)\n\t/src/operator/sync.go:7 +0x1"}`

func TestPanicIn(t *testing.T) {
	tests := map[string]struct{ log, first, line string }{
		"no panic":                       {log: "no panic: all is well\ndon't panic\n"},
		"a panic that is only mentioned": {log: "panic: is what the user's program says\nand no more\n"},
		"Go's crash":                     {log: crashOfGo, first: "panic: assignment to entry in nil map", line: "/home/gopher/operator/sync.go:42"},
		"Go's fatal error":               {log: "fatal error: concurrent map writes\n\ngoroutine 7 [running]:\nmain.f()\n\t/src/main.go:3", first: "fatal error: concurrent map writes", line: "/src/main.go:3"},
		"a recovered panic, in JSON":     {log: "first\n" + loggedInJSON + "\n", first: loggedInJSON, line: "/src/operator/sync.go:7"},
		"controller-runtime's error": {
			log: `E1 controller.go:474] "Reconciler error" err="panic: boom [recovered]"`, first: `E1 controller.go:474] "Reconciler error" err="panic: boom [recovered]"`,
			line: "an unknown line: the stack has none of the operator's own",
		},
		"Rust's panic": {log: "thread 'main' (12) panicked at src/main.rs:2:5:\nboom", first: "thread 'main' (12) panicked at src/main.rs:2:5:", line: "an unknown line: the stack has none of the operator's own"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := panicIn(test.log)
			if test.first == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HavePrefix(test.first))
			g.Expect(ownLine(found)).To(Equal(test.line))
		})
	}
}

// newInstance returns an operator whose panics are recorded until the test ends.
func newInstance(t *testing.T, label string) *Instance {
	tap := traffic.New()
	made := &Instance{Tap: tap, label: label, log: &operatorLog{dead: tap.Killed}}
	handled.add(made)
	t.Cleanup(func() { handled.remove(made) })
	return made
}

// panicking panics in a goroutine that the operator starts.
func panicking(operator *Instance) {
	var ended sync.WaitGroup
	pprof.Do(context.Background(), pprof.Labels(instanceLabel, operator.label), func(context.Context) {
		ended.Go(func() {
			defer utilruntime.HandleCrash()
			none := []string{}
			none[len(operator.label)] = "value"
		})
	})
	ended.Wait()
}

func TestAPanicIsRecordedForItsOperatorOnly(t *testing.T) {
	g := NewWithT(t)
	klog.SetLogger(logr.Discard()) // the panic is expected
	t.Cleanup(klog.ClearLogger)
	t.Cleanup(handled.catchPanics())
	one, other, dead := newInstance(t, `of "one"`), newInstance(t, "of another"), newInstance(t, "of a dead one")
	dead.Tap.Kill()

	panicking(one)
	panicking(dead)

	g.Expect(one.notedPanic()).To(HavePrefix("runtime error: index out of range [8] with length 0\n"))
	g.Expect(ownLine(one.notedPanic())).To(ContainSubstring("panics_test.go:"))
	g.Expect(other.notedPanic()).To(BeEmpty())
	g.Expect(dead.notedPanic()).To(BeEmpty(), "a panic after a kill must not be recorded: a dead process can't panic")
}

func TestPanicsAreFatalAgainAfterTheLastRestore(t *testing.T) {
	g := NewWithT(t)
	first, second := handled.catchPanics(), handled.catchPanics()
	first()
	first()
	g.Expect(utilruntime.ReallyCrash).To(BeFalse(), "a panic must not be fatal while another Runner is open")
	second()
	g.Expect(utilruntime.ReallyCrash).To(BeTrue())
}
