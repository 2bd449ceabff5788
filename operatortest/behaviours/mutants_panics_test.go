package behaviours

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/operatortest"
)

// Panics that end the process, that abort a reconcile, or that show only in the operator's output.
const (
	panicsOnce  mutation = "panics in its first reconcile, and controller-runtime recovers the panic"
	panicsAside mutation = "panics in another goroutine, where apimachinery's HandleCrash panics again"
	panicsInRun mutation = "panics when it starts"
	printsPanic mutation = "is a process that prints a panic, and continues"
)

// recoversItself is a correct operator that resembles these.
const recoversItself mutation = "recovers from its own panic, and logs it"

func (r *gadgetReconciler) panicOnce(ctx context.Context, gadget *unstructured.Unstructured) error {
	if _, again := r.memory.LoadOrStore("panicked", true); !again {
		sizes := []int{}
		sizes[len(gadget.GetName())] = 1
	}
	return r.alsoMake(ctx, gadget, nil)
}

func (r *gadgetReconciler) panicAside(ctx context.Context, gadget *unstructured.Unstructured) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer utilruntime.HandleCrash()
		panic("no room for " + gadget.GetName())
	}()
	<-ended
	return r.alsoMake(ctx, gadget, nil)
}

func (r *gadgetReconciler) recoverItself(ctx context.Context, gadget *unstructured.Unstructured) error {
	func() {
		defer func() { log.FromContext(ctx).Info("panic: found no gadgets [1] below this one", "reason", recover()) }()
		panic("no more gadgets")
	}()
	return r.alsoMake(ctx, gadget, nil)
}

// printPanic prints what apimachinery prints about a panic, as a process would on its standard error.
func printPanic(options operatortest.RunOptions) error {
	file, err := os.CreateTemp("", "gadget-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := options.LogFile(file.Name()); err != nil {
		return err
	}
	_, err = file.WriteString("E1123 02:00:00.000000 1 runtime.go:142] \"Observed a panic\" panic=\"boom\" stacktrace=<\n" +
		"\tpanic({0x1, 0x2})\n\t\t/usr/local/go/src/runtime/panic.go:783 +0x132\n\tmain.sync()\n\t\t/src/gadget/sync.go:7 +0x1\n >\n")
	return err
}

var _ = Describe("the test kit", func() {
	catches("panics",
		mutant{converges, panicsOnce, "operator 1 of the trial converges/"},
		mutant{converges, panicsOnce, "index out of range [6] with length 0\nat "},
		mutant{converges, panicsOnce, "mutants_panics_test.go:"},
		mutant{converges, panicsAside, "no room for gadget"},
		mutant{converges, panicsInRun, "there are no gadgets"},
		mutant{converges, printsPanic, "at /src/gadget/sync.go:7"},
	)
})
