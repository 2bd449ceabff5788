package behaviours

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// shownDepartures is how many differences a failure shows at most.
const shownDepartures = 10

// history checks what final states don't show: after a PersistentVolumeClaim is deleted and recreated, the final state
// looks like any other, but the data is lost. The behaviour checks the lifecycles that other behaviours, such as
// "crash" and "faults", run. It also runs one itself, so that it can be tried alone.
var history = behaviour{
	name:    "history",
	promise: "takes no detour after a kill or failed requests: it deletes nothing only to create it again, and writes nothing back and forth",
	advice: "what the operator does when it starts, or finds its work half done: keep what exists, and write only what differs; " +
		"write a child in one request, not in steps; delete it only if it can't be changed",
	after: crash.name,
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, writes, err := undisturbed(ctx, runner)
		if err != nil {
			return err
		}
		// One operator after another is killed, each right after the next write of the undisturbed lifecycle.
		points := make([]*crashPoint, len(writes))
		for i, each := range writes {
			points[i] = &crashPoint{target: write{what: each.what, nth: 1}, recorded: writes}
		}
		if err := playCrashes(ctx, runner.Try, life, "killed right after each write in turn", points...); err != nil {
			return err
		}
		return direct(runner)
	},
	afterAll: direct,
}

// direct returns an error if children were created, or their fields went back to earlier values, more often in a
// disturbed lifecycle than in the undisturbed one.
func direct(runner *trial.Runner) error {
	var reference trial.History
	var disturbed []trial.Lived
	for _, lived := range runner.Histories() {
		if behaviourOf(lived.Trial) == "" {
			reference = lived.History
		} else {
			disturbed = append(disturbed, lived)
		}
	}
	trials := map[string][]string{}
	var found []string
	for _, lived := range disturbed {
		for _, departure := range lived.Beyond(reference) {
			if len(trials[departure]) == 0 {
				found = append(found, departure)
			}
			trials[departure] = append(trials[departure], lived.Trial)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	var lines []string
	for _, departure := range found[:min(len(found), shownDepartures)] {
		lines = append(lines, fmt.Sprintf("%s, in the trial %s", departure, trials[departure][0]))
		if more := len(trials[departure]) - 1; more > 0 {
			lines[len(lines)-1] += fmt.Sprintf(" and %d more", more)
		}
	}
	if more := len(found) - shownDepartures; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("expected the children to have the same history whether the operator is disturbed or not\nfound\n%s", strings.Join(lines, "\n"))
}
