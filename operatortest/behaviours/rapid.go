package behaviours

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rapidFlags guards rapid's settings, which are flags of the whole process.
var rapidFlags sync.Mutex

// runRapid draws random values for a property from a seed. If the property fails, rapid searches, for about the given
// time, for smaller and smaller values that also make it fail; the last failure is the smallest one found. Other users
// of rapid keep their settings.
func runRapid(seed int64, shrinkTime time.Duration, property func(*rapid.T)) {
	rapidFlags.Lock()
	defer rapidFlags.Unlock()
	if !flag.Parsed() { // not in go test; rapid asks package testing for -short
		testing.Init()
		_ = flag.CommandLine.Parse(nil) // there is nothing to parse
	}
	for name, value := range map[string]string{
		"rapid.seed":       strconv.FormatInt(seed, 10),
		"rapid.checks":     "5", // with -short, rapid runs a fifth of them
		"rapid.shrinktime": shrinkTime.String(),
		"rapid.nofailfile": "true",
		"rapid.failfile":   "",
	} {
		setting := flag.Lookup(name)
		if setting == nil {
			continue
		}
		before := setting.Value.String()
		defer func() { _ = setting.Value.Set(before) }() // the old value was valid
		if err := setting.Value.Set(value); err != nil {
			panic(fmt.Sprintf("set the flag -%s: %v", name, err))
		}
	}
	done := make(chan struct{})
	go func() { // rapid ends the goroutine of a failing test
		defer close(done)
		rapid.Check(&silentTB{}, property)
	}()
	<-done
}

// silentTB discards what rapid reports to a test. The property has the information already.
type silentTB struct{ failed bool }

var _ rapid.TB = (*silentTB)(nil)

func (*silentTB) Helper() {}

func (*silentTB) Name() string { return "operatortest" }

func (*silentTB) Logf(string, ...any) {}

func (*silentTB) Log(...any) {}

func (*silentTB) Skipf(string, ...any) { runtime.Goexit() }

func (*silentTB) Skip(...any) { runtime.Goexit() }

func (*silentTB) SkipNow() { runtime.Goexit() }

func (s *silentTB) Errorf(string, ...any) { s.failed = true }

func (s *silentTB) Error(...any) { s.failed = true }

func (s *silentTB) Fatalf(string, ...any) { s.FailNow() }

func (s *silentTB) Fatal(...any) { s.FailNow() }

func (s *silentTB) Fail() { s.failed = true }

func (s *silentTB) Failed() bool { return s.failed }

func (s *silentTB) FailNow() {
	s.failed = true
	runtime.Goexit()
}
