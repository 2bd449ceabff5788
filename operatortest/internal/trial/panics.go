package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// A panic is an error in every trial, for each of them means that a reconcile stopped anywhere. How it is found:
//
//   - controller-runtime recovers it, and calls the handlers of apimachinery;
//   - client-go calls the same handlers and lets the panic go on, which would end all trials; see catchPanics;
//   - in the goroutine that the kit calls Run in, the kit recovers it;
//   - as a process, the operator prints it.
//
// What remains is a panic in a goroutine in which nothing recovers it: Go ends the test process, and prints the stack.

// errPanicked ends a wait. What is known of the panic follows at the end of the trial.
var errPanicked = errors.New("an operator has panicked")

// handled is what the process-wide handlers of panics know.
var handled = &panicHandler{operators: map[string]*Instance{}}

type panicHandler struct {
	once sync.Once
	mu   sync.Mutex
	// operators are those that run, by the label of their goroutines.
	operators map[string]*Instance
	// runners counts the Runners that are open; reallyCrash is what was set before the first of them.
	runners     int
	reallyCrash bool
}

// catchPanics keeps a panic that client-go hands on from ending the process, and with it all trials, until a Runner is closed.
func (h *panicHandler) catchPanics() (restore func()) {
	h.once.Do(func() { utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, h.observe) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runners++; h.runners == 1 {
		h.reallyCrash, utilruntime.ReallyCrash = utilruntime.ReallyCrash, false
	}
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.runners--; h.runners == 0 {
			utilruntime.ReallyCrash = h.reallyCrash
		}
	})
}

func (h *panicHandler) add(operator *Instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operators[operator.label] = operator
}

func (h *panicHandler) remove(operator *Instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.operators, operator.label)
}

// observe is called in the goroutine that has panicked.
func (h *panicHandler) observe(_ context.Context, reason any) {
	if err, isError := reason.(error); isError && errors.Is(err, http.ErrAbortHandler) {
		return // how a server breaks a connection off
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if operator, known := h.operators[ownLabel()]; known {
		operator.notePanic(reason, string(debug.Stack()))
	}
}

// ownLabel is the label of the calling goroutine. Calls must not overlap: it knows itself by its name in the stack.
func ownLabel() string {
	goroutines, _ := allGoroutines()
	for _, each := range goroutines {
		if strings.Contains(each.stack, "trial.ownLabel") {
			return each.label
		}
	}
	return ""
}

// notePanic keeps the first panic of an operator that is not dead.
func (i *Instance) notePanic(reason any, stack string) {
	i.panicMu.Lock()
	defer i.panicMu.Unlock()
	if i.panic == "" && !i.Tap.Killed() {
		i.panic = fmt.Sprintf("%v\n%s", reason, stack)
	}
}

// notedPanic is empty if none was seen.
func (i *Instance) notedPanic() string {
	i.panicMu.Lock()
	defer i.panicMu.Unlock()
	return i.panic
}

// lookAfter is what comes before each look at the cluster.
func (t *Trial) lookAfter() error {
	for _, operator := range t.instances {
		if operator.notedPanic() != "" {
			return errPanicked
		}
	}
	return t.BeforeLook()
}

// panicked returns an error if an operator of the trial panicked, whether something recovered that or not.
func (t *Trial) panicked() error {
	for i, operator := range t.instances {
		found := operator.notedPanic()
		if found == "" {
			found = panicIn(operator.log.String())
		}
		if found == "" {
			continue
		}
		reason, stack, _ := strings.Cut(found, "\n")
		return fmt.Errorf("expected no panic in the operator, also none that a framework recovers\nfound, in operator %d of the trial %s: %s\nat %s\n%s",
			i+1, t.id, reason, ownLine(stack), operator.log.lastLines())
	}
	return nil
}

// printed are the ways in which a panic is printed: by Go when it ends the process, also for its other fatal errors; by
// apimachinery; by controller-runtime; by Rust.
var printed = regexp.MustCompile(`(?m)^(?:panic|fatal error): [^\n]*\n(?:[^\n]*\n){0,20}?goroutine \d+ .*\[` +
	`|^.*Observed a panic.*$|^.*panic: [^\n]*\[recovered\b.*$|^thread '[^'\n]*'.* panicked at .*$`)

// panicIn is the part of a log that begins with a panic, and empty if there is none.
func panicIn(log string) string {
	at := printed.FindStringIndex(log)
	if at == nil {
		return ""
	}
	return log[at[0]:]
}

var (
	// panicCall is the frame below which the code is that panicked. A log in JSON has the stack in a string.
	panicCall = regexp.MustCompile(`(?:\n|\\n)panic\(`)
	frameLine = regexp.MustCompile(`(?:\t|\\t)([^\s\\"]+\.go:\d+)`)
)

// ownLine is the first line of a Go stack that is neither Go's own nor that of a module which the operator uses.
func ownLine(stack string) string {
	if calls := panicCall.FindAllStringIndex(stack, -1); calls != nil {
		stack = stack[calls[len(calls)-1][1]:]
	}
	for _, found := range frameLine.FindAllStringSubmatch(stack, -1) {
		if file := found[1]; !strings.Contains(file, "/src/runtime/") && !strings.HasPrefix(file, "runtime/") &&
			!strings.Contains(file, "@") && !strings.Contains(file, "/vendor/") {
			return file
		}
	}
	return "an unknown line: the stack has none of the operator's own"
}
