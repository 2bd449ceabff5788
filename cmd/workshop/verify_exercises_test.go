package main

import (
	"fmt"
	"strings"
	"testing"

	"example.com/operator-workshop/internal/exercise"
)

func TestHalves(t *testing.T) {
	unit := exercise.Check{Run: "TestAdd"}
	specs := exercise.Check{Run: "TestControllers", Label: "drift"}
	for _, test := range []struct {
		checks        []exercise.Check
		first, second string
	}{
		{[]exercise.Check{unit, unit, unit, unit}, "0 1", "2 3"},
		{[]exercise.Check{unit, unit, unit, specs}, "0 1 2", "3"},
		{[]exercise.Check{specs, unit, unit, unit}, "0", "1 2 3"},
		{[]exercise.Check{unit, unit, unit, specs, specs}, "0 1 2 3", "4"},
		{[]exercise.Check{specs, specs}, "0", "1"},
	} {
		stage := &exercise.Stage{}
		for i, check := range test.checks {
			stage.Steps = append(stage.Steps, exercise.Step{ID: fmt.Sprint(i), Checks: []exercise.Check{check}})
		}
		parts := halves(stage)
		if first, second := strings.Join(parts[0].steps, " "), strings.Join(parts[1].steps, " "); first != test.first || second != test.second {
			t.Errorf("expected %q and %q\nfound %q and %q", test.first, test.second, first, second)
		}
	}
}
