package operatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

const (
	// journeys is how many journeys are tried, stops how many specs each may visit.
	journeys, stops = 8, 4
	// drawnSpecs is how many specs they visit, besides the sample's.
	drawnSpecs = 5
)

// journey is a sequence of specs that one resource is given.
type journey struct {
	specs []map[string]any
	// hurried tells that only the first and the last are waited for.
	hurried bool
}

func (j journey) String() string {
	text := &strings.Builder{}
	for i, spec := range j.specs {
		step := "change the spec to"
		if i == 0 {
			step = "create it with"
		}
		if j.passes(i) {
			step = "don't wait, " + step
		}
		fmt.Fprintf(text, "  %d. %s %s\n", i+1, step, oneLine(spec))
	}
	return text.String()
}

// passes tells whether the next spec comes before anything could be made of this one.
func (j journey) passes(i int) bool { return j.hurried && i > 0 && i < len(j.specs)-1 }

// travels is the search for a journey that ends elsewhere than a new resource does.
type travels struct {
	*lab
	known *specs

	mu sync.Mutex
	// admitted holds what the API server says of a spec, verdicts what became of a
	// journey, both by their texts; nil is a success.
	admitted, verdicts map[string]error
	// ends holds what new resources end like, by their specs.
	ends map[string]state
	// slowest is how long the slowest successful wait took; zero if none did.
	slowest time.Duration
}

// errNoWay says that the API server refuses a change on the way.
var errNoWay = errors.New("the API server refuses a change on the way")

func (l *lab) newTravels(known *specs) *travels {
	return &travels{lab: l, known: known, admitted: map[string]error{}, verdicts: map[string]error{}, ends: map[string]state{}}
}

// randomSeed is what everything random is drawn from.
func (l *lab) randomSeed() int64 {
	if l.seed != 0 {
		return l.seed
	}
	return max(ginkgo.GinkgoRandomSeed(), 1)
}

// plan is what is drawn at random: the specs to visit, and journeys among them.
type plan struct {
	specs    []map[string]any
	journeys []journey
}

// draw lets rapid choose a plan. The same random bits give the same plan, and
// with fewer of them set it has shorter journeys to specs that are more like the
// sample's. As many bits are drawn for every plan, which makes shrinking quick.
func (s *travels) draw(t *rapid.T) plan {
	drawn := plan{specs: []map[string]any{s.known.base}}
	var visits [journeys][stops]int
	var hurried [journeys]bool
	for i := range journeys {
		for stop := range stops {
			visits[i][stop] = drawBelow(t, drawnSpecs+1)
		}
		hurried[i] = rapid.Bool().Draw(t, "hurried")
	}
	for range drawnSpecs {
		spec, _ := s.known.build(s.known.base, func(choice choice) int { return drawBelow(t, len(choice.options)+1) })
		drawn.specs = append(drawn.specs, spec)
	}
	for i := range journeys {
		made := journey{hurried: hurried[i]}
		for _, visit := range visits[i] {
			made.specs = append(made.specs, drawn.specs[visit])
		}
		made.specs = s.known.ascend(made.specs, s.operator.Ascending)
		drawn.journeys = append(drawn.journeys, made)
	}
	return drawn
}

// drawBelow draws a number below n, bit by bit: zero is the simplest.
func drawBelow(t *rapid.T, n int) int {
	number := 0
	for bit := 1; bit < n; bit <<= 1 {
		if rapid.Bool().Draw(t, "bit") {
			number += bit
		}
	}
	return number % n
}

// sift drops the specs that the API server refuses, and what is then no change any more.
func (s *travels) sift(ctx context.Context, drawn journey) (journey, error) {
	sifted := journey{}
	for _, spec := range drawn.specs {
		key := oneLine(spec)
		err, found := s.admitted[key]
		if !found {
			_, err = s.admits(ctx, spec)
		}
		if err != nil && !refused(err) {
			return journey{}, err
		}
		s.admitted[key] = err
		if err == nil {
			sifted.specs = append(sifted.specs, spec)
		}
	}
	sifted.specs = slices.CompactFunc(sifted.specs, func(one, next map[string]any) bool { return equal(one, next) })
	sifted.hurried = drawn.hurried && len(sifted.specs) > 2
	return sifted, nil
}

// plan draws the journeys to try: those that lead from one spec to another.
func (s *travels) plan(ctx context.Context) ([]journey, error) {
	for _, path := range s.operator.Ascending {
		if s.known.rank(s.known.base, path) < 0 {
			return nil, fmt.Errorf("expected operator.Values to list the values of %s, which only ascends, in their order\n"+
				"found %s, without the sample's own", path, oneLine(s.known.values[path]))
		}
	}
	var drawn plan
	runRapid(s.randomSeed(), s.shrinkTime, func(t *rapid.T) {
		if made := s.draw(t); drawn.specs == nil {
			drawn = made
		}
	})
	var all []journey
	for _, made := range drawn.journeys {
		sifted, err := s.sift(ctx, made)
		if err != nil {
			return nil, err
		}
		all = append(all, sifted)
	}
	if slices.ContainsFunc(all, journey.leads) {
		return all, nil
	}
	var refusals []string
	for _, err := range s.admitted {
		if err != nil {
			refusals = append(refusals, err.Error())
		}
	}
	slices.Sort(refusals)
	return nil, fmt.Errorf("expected the API server to accept some of the specs made from the schema\nfound none: declare Operator.Values\n%s",
		strings.Join(refusals, "\n"))
}

func (j journey) leads() bool { return len(j.specs) > 1 }

// verdict tries a journey, with all the time that the operator has.
func (s *travels) verdict(ctx context.Context, journey journey) error {
	ends := make([]state, len(journey.specs))
	for i, spec := range journey.specs {
		var err error
		if ends[i], err = s.end(ctx, spec); err != nil {
			return err // not a matter of what was before
		}
	}
	err := s.try(ctx, func(ctx context.Context, trial *trial) error {
		operator := trial.start(RunOptions{})
		resource := trial.resource(journey.specs[0])
		if err := s.follow(ctx, trial, resource, journey, ends, 0); err != nil {
			return err
		}
		if err := trial.rest(ctx, operator); err != nil {
			return err
		}
		return trial.convergeTo(ctx, resource, ends[len(ends)-1], "the same end as that of a new resource with the last spec, for good")
	})
	if ctx.Err() == nil { // else it was cut short: another one failed, or time is up
		s.judge(journey, err)
	}
	return err
}

func (s *travels) judge(journey journey, verdict error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[journey.String()] = verdict
}

// failed tells whether a journey was tried and ended elsewhere.
func (s *travels) failed(journey journey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.verdicts[journey.String()]
	return err != nil && !errors.Is(err, errNoWay)
}

// arrived tells whether a journey was tried and ended as it should.
func (s *travels) arrived(journey journey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err, judged := s.verdicts[journey.String()]
	return judged && err == nil
}

// end is what a new resource of a spec ends like.
func (s *travels) end(ctx context.Context, spec map[string]any) (state, error) {
	found, err := s.wanted(ctx, s.known, spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[oneLine(spec)] = found
	return found, nil
}

// follow gives a resource one spec after the other, and expects the end that a
// new resource of each has. Patience bounds each wait, if it is not zero.
func (s *travels) follow(ctx context.Context, trial *trial, resource *unstructured.Unstructured, journey journey, ends []state, patience time.Duration) error {
	if err := trial.create(ctx, resource); err != nil {
		return err
	}
	for i, spec := range journey.specs {
		if i > 0 {
			err := trial.respec(ctx, resource, spec)
			if refused(err) {
				return errNoWay
			}
			if err != nil {
				return err
			}
		}
		if journey.passes(i) {
			continue
		}
		began := time.Now()
		err := within(ctx, patience, func(ctx context.Context) error {
			return trial.convergeTo(ctx, resource, ends[i], fmt.Sprintf("after step %d the same end as that of a new resource with that spec", i+1))
		})
		if err != nil {
			return err
		}
		s.took(time.Since(began))
	}
	return nil
}

// took notes how long a successful wait was.
func (s *travels) took(duration time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, duration)
}

// within bounds what a function waits for, if the bound is not zero.
func within(ctx context.Context, bound time.Duration, wait func(context.Context) error) error {
	if bound == 0 {
		return wait(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return wait(ctx)
}
