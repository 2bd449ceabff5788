package behaviours

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

const (
	// sequences is the number of sequences to draw; stepsPerSequence is the maximum number of specs that each visits.
	sequences, stepsPerSequence = 8, 4
	// drawnSpecs is the number of specs to draw for the sequences, besides the sample's.
	drawnSpecs = 5
)

// sequence contains the specs that one resource gets, one after the other.
type sequence struct {
	specs []map[string]any
	// hurried means that the kit waits only for the first spec and the last.
	hurried bool
}

func (j sequence) String() string {
	text := &strings.Builder{}
	for i, spec := range j.specs {
		step := "change the spec to"
		if i == 0 {
			step = "create it with"
		}
		if j.passes(i) {
			step = "don't wait, " + step
		}
		fmt.Fprintf(text, "  %d. %s %s\n", i+1, step, specgen.OneLine(spec))
	}
	return text.String()
}

// oneLine returns a name for the sequence: its specs, in order.
func (j sequence) oneLine() string {
	specs := make([]string, len(j.specs))
	for i, spec := range j.specs {
		specs[i] = specgen.OneLine(spec)
	}
	return strings.Join(specs, " → ")
}

// passes reports whether the kit sets the next spec without waiting until the operator has fulfilled this one.
func (j sequence) passes(i int) bool { return j.hurried && i > 0 && i < len(j.specs)-1 }

// search looks for a sequence of specs after which a resource's final state differs from that of a new resource with
// the last of these specs.
type search struct {
	*trial.Runner
	known *specgen.Specs

	mu sync.Mutex
	// admitted contains the API server's verdict on each spec, and results contains the outcome of each sequence; both
	// keyed by the text of the spec or the sequence. A nil error means success.
	admitted, results map[string]error
	// ends contains the final states of new resources, keyed by spec.
	ends map[string]state.Snapshot
	// slowest is the duration of the slowest successful wait. It is zero if no wait succeeded.
	slowest time.Duration
}

// errNoWay means that the API server refuses one of the changes in a sequence.
var errNoWay = errors.New("the API server refuses a change on the way")

func newSearch(runner *trial.Runner, known *specgen.Specs) *search {
	return &search{Runner: runner, known: known, admitted: map[string]error{}, results: map[string]error{}, ends: map[string]state.Snapshot{}}
}

// randomSeed returns the seed for all random choices.
func randomSeed(operator operatortest.Operator) int64 { return cmp.Or(operator.Seed, 1) }

// plan contains everything that is drawn at random: the specs to visit, and sequences of them.
type plan struct {
	specs     []map[string]any
	sequences []sequence
}

// draw has rapid choose a plan. The same random bits give the same plan. The fewer bits are set, the more the specs
// resemble the sample's, and the shorter the sequences are once keepAdmitted has dropped repeated specs. The sequences
// are drawn first, from the same number of bits in every plan, which makes shrinking quick.
func (s *search) draw(t *rapid.T) plan {
	drawn := plan{specs: []map[string]any{s.known.Base}}
	var visits [sequences][stepsPerSequence]int
	var hurried [sequences]bool
	for i := range sequences {
		for stop := range stepsPerSequence {
			visits[i][stop] = drawBelow(t, drawnSpecs+1)
		}
		hurried[i] = rapid.Bool().Draw(t, "hurried")
	}
	for range drawnSpecs {
		spec, _ := s.known.Build(s.known.Base, func(choice specgen.Choice) int { return drawBelow(t, len(choice.Options)+1) })
		drawn.specs = append(drawn.specs, spec)
	}
	for i := range sequences {
		made := sequence{hurried: hurried[i]}
		for _, visit := range visits[i] {
			made.specs = append(made.specs, drawn.specs[visit])
		}
		made.specs = s.known.Ascend(made.specs, s.Operator.Ascending)
		drawn.sequences = append(drawn.sequences, made)
	}
	return drawn
}

// drawBelow draws a number below n, bit by bit. It is zero if no bit is set.
func drawBelow(t *rapid.T, n int) int {
	number := 0
	for bit := 1; bit < n; bit <<= 1 {
		if rapid.Bool().Draw(t, "bit") {
			number += bit
		}
	}
	return number % n
}

// keepAdmitted drops the specs that the API server refuses, and then each spec that is the same as the one before it.
func (s *search) keepAdmitted(ctx context.Context, drawn sequence) (sequence, error) {
	sifted := sequence{}
	for _, spec := range drawn.specs {
		key := specgen.OneLine(spec)
		err, found := s.admitted[key]
		if !found {
			_, err = s.Admits(ctx, spec)
		}
		if err != nil && !trial.Refused(err) {
			return sequence{}, err
		}
		s.admitted[key] = err
		if err == nil {
			sifted.specs = append(sifted.specs, spec)
		}
	}
	sifted.specs = slices.CompactFunc(sifted.specs, func(one, next map[string]any) bool { return specgen.Same(one, next) })
	sifted.hurried = drawn.hurried && len(sifted.specs) > 2
	return sifted, nil
}

// plan draws the sequences to try. It returns an error if none of them leads from one spec to another, or if
// Operator.Values lacks the sample's value of a field in Operator.Ascending.
func (s *search) plan(ctx context.Context) ([]sequence, error) {
	for _, path := range s.Operator.Ascending {
		if s.known.Rank(s.known.Base, path) < 0 {
			return nil, fmt.Errorf("expected Operator.Values to list the values of %s, which can only increase, in ascending order\n"+
				"found %s, which lacks the sample's value", path, specgen.OneLine(s.known.Values[path]))
		}
	}
	var drawn plan
	runRapid(randomSeed(s.Operator), defaultShrinkTime, func(t *rapid.T) {
		if made := s.draw(t); drawn.specs == nil {
			drawn = made
		}
	})
	var all []sequence
	for _, made := range drawn.sequences {
		sifted, err := s.keepAdmitted(ctx, made)
		if err != nil {
			return nil, err
		}
		all = append(all, sifted)
	}
	if slices.ContainsFunc(all, sequence.changes) {
		return all, nil
	}
	var refusals []string
	for _, err := range s.admitted {
		if err != nil {
			refusals = append(refusals, err.Error())
		}
	}
	slices.Sort(refusals)
	return nil, fmt.Errorf("expected the API server to accept several different specs made from the schema\n"+
		"found no sequence with two of them: declare more values in Operator.Values\n%s",
		strings.Join(refusals, "\n"))
}

func (j sequence) changes() bool { return len(j.specs) > 1 }

// try tries a sequence, with the operator's full timeout.
func (s *search) try(ctx context.Context, sequence sequence) error {
	ends := make([]state.Snapshot, len(sequence.specs))
	for i, spec := range sequence.specs {
		var err error
		if ends[i], err = s.end(ctx, spec); err != nil {
			return err // a new resource with this spec fails, too, so the earlier specs are not the reason
		}
	}
	err := s.Try(ctx, sequence.oneLine(), func(ctx context.Context, t *trial.Trial) error {
		operator := t.Start(operatortest.RunOptions{})
		resource := t.Resource(sequence.specs[0])
		if err := s.follow(ctx, t, resource, sequence, ends, 0); err != nil {
			return err
		}
		if err := t.WaitAtRest(ctx, operator); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, ends[len(ends)-1], "the resource to reach the same final state as a new resource with the last spec, and to stay there")
	})
	if ctx.Err() == nil { // otherwise it was cut short: another one failed, or the time is up
		s.record(sequence, err)
	}
	return err
}

func (s *search) record(sequence sequence, verdict error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[sequence.String()] = verdict
}

// failed reports whether a sequence was tried and led to the wrong state.
func (s *search) failed(sequence sequence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.results[sequence.String()]
	return err != nil && !errors.Is(err, errNoWay)
}

// arrived reports whether a sequence was tried and led to the right state.
func (s *search) arrived(sequence sequence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err, judged := s.results[sequence.String()]
	return judged && err == nil
}

// end returns the final state of a new resource with a spec.
func (s *search) end(ctx context.Context, spec map[string]any) (state.Snapshot, error) {
	found, err := s.FreshOf(ctx, s.known, spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[specgen.OneLine(spec)] = found
	return found, nil
}

// follow creates a resource, and gives it one spec after another. It returns errNoWay if the API server refuses a
// change. Unless the sequence passes a spec without waiting, follow waits for that spec's state in ends. If limit is
// not zero, it bounds each wait.
func (s *search) follow(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured, sequence sequence, ends []state.Snapshot, limit time.Duration) error {
	if err := t.Create(ctx, resource); err != nil {
		return err
	}
	for i, spec := range sequence.specs {
		if i > 0 {
			err := t.SetSpec(ctx, resource, spec)
			if trial.Refused(err) {
				return errNoWay
			}
			if err != nil {
				return err
			}
		}
		if sequence.passes(i) {
			continue
		}
		began := time.Now()
		err := within(ctx, limit, func(ctx context.Context) error {
			return t.ConvergeTo(ctx, resource, ends[i], fmt.Sprintf("the same final state after step %d as that of a new resource with that spec", i+1))
		})
		if err != nil {
			return err
		}
		s.took(time.Since(began))
	}
	return nil
}

func (s *search) took(duration time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, duration)
}

// within limits the time that wait may take, unless the bound is zero.
func within(ctx context.Context, bound time.Duration, wait func(context.Context) error) error {
	if bound == 0 {
		return wait(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return wait(ctx)
}
