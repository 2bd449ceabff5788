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

// A panic is an error in every trial, because it means that some work, such as a reconcile, was aborted. How the kit
// detects a panic:
//
//   - controller-runtime recovers it, and calls apimachinery's handlers;
//   - client-go calls the same handlers and panics again, which would end all trials; see catchPanics;
//   - in the goroutine in which the kit calls Run, the kit recovers it;
//   - an operator that is a process prints it.
//
// A panic in any other goroutine, if nothing recovers it, ends the test process and so all trials: Go prints the
// stack.

// errPanicked ends a wait. Try then adds what is known about the panic.
var errPanicked = errors.New("an operator has panicked")

// handled is the only panicHandler: apimachinery's panic handlers apply to the whole process.
var handled = &panicHandler{operators: map[string]*Instance{}}

type panicHandler struct {
	once sync.Once
	mu   sync.Mutex
	// operators holds the operators of the trials in progress, keyed by the labels of their goroutines.
	operators map[string]*Instance
	// runners counts the open Runners; reallyCrash is the value that apimachinery's ReallyCrash had before the first of
	// them was opened.
	runners     int
	reallyCrash bool
}

// catchPanics makes sure that a panic that client-go raises again doesn't end the process, and with it all trials. Each
// Runner calls catchPanics when it is opened, and restore when it is closed; the last restore makes such panics fatal
// again.
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

// observe records a panic for the operator to which the calling goroutine belongs. apimachinery calls it in the goroutine
// that panicked.
func (h *panicHandler) observe(_ context.Context, reason any) {
	if err, isError := reason.(error); isError && errors.Is(err, http.ErrAbortHandler) {
		return // this is how a server aborts a connection
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if operator, known := h.operators[ownLabel()]; known {
		operator.notePanic(reason, string(debug.Stack()))
	}
}

// ownLabel returns the label of the calling goroutine. It finds that goroutine in the profile by the function name
// ownLabel in its stack, so calls must not overlap.
func ownLabel() string {
	goroutines, _ := allGoroutines()
	for _, each := range goroutines {
		if strings.Contains(each.stack, "trial.ownLabel") {
			return each.label
		}
	}
	return ""
}

// notePanic records an operator's first panic, unless the operator is dead.
func (i *Instance) notePanic(reason any, stack string) {
	i.panicMu.Lock()
	defer i.panicMu.Unlock()
	if i.panic == "" && !i.Tap.Killed() {
		i.panic = fmt.Sprintf("%v\n%s", reason, stack)
	}
}

// notedPanic returns the recorded panic, or "" if there is none.
func (i *Instance) notedPanic() string {
	i.panicMu.Lock()
	defer i.panicMu.Unlock()
	return i.panic
}

// lookAfter returns an error if an operator has panicked, and otherwise what BeforeLook returns. A wait calls lookAfter
// before each check of the cluster.
func (t *Trial) lookAfter() error {
	for _, operator := range t.instances {
		if operator.notedPanic() != "" {
			return errPanicked
		}
	}
	return t.BeforeLook()
}

// panicked returns an error if one of the trial's operators panicked, whether or not something recovered the panic.
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
		return fmt.Errorf("expected no panic in the operator, not even one that a framework recovers\nfound, in operator %d of the trial %s: %s\nat %s\nthe last lines of its log:\n%s",
			i+1, t.id, reason, ownLine(stack), operator.log.lastLines())
	}
	return nil
}

// printed matches a panic as it is printed by Go when it ends the process, by apimachinery, by controller-runtime or by
// Rust. It also matches Go's other fatal errors.
var printed = regexp.MustCompile(`(?m)^(?:panic|fatal error): [^\n]*\n(?:[^\n]*\n){0,20}?goroutine \d+ .*\[` +
	`|^.*Observed a panic.*$|^.*panic: [^\n]*\[recovered\b.*$|^thread '[^'\n]*'.* panicked at .*$`)

// panicIn returns the part of a log that begins with a panic, or "" if there is none.
func panicIn(log string) string {
	at := printed.FindStringIndex(log)
	if at == nil {
		return ""
	}
	return log[at[0]:]
}

var (
	// panicCall matches the stack frame of the call to panic; the frames below it are the code that panicked. In a JSON log,
	// the stack is in a string.
	panicCall = regexp.MustCompile(`(?:\n|\\n)panic\(`)
	frameLine = regexp.MustCompile(`(?:\t|\\t)([^\s\\"]+\.go:\d+)`)
)

// ownLine returns the first source line in a Go stack, below the last call to panic if there is one, that is neither in
// Go's runtime nor in a module that the operator uses.
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
