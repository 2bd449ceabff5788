package main

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/exercise"
)

func TestHalves(t *testing.T) {
	g := NewWithT(t)
	unit := exercise.Check{Run: "TestAdd"}
	specs := exercise.Check{Run: "TestControllers", Label: "drift"}
	for _, test := range []struct {
		checks []exercise.Check
		want   []string
	}{
		{[]exercise.Check{unit, unit, unit, unit}, []string{"0 1", "2 3"}},
		{[]exercise.Check{unit, unit, unit, specs}, []string{"0 1 2", "3"}},
		{[]exercise.Check{specs, unit, unit, unit}, []string{"0", "1 2 3"}},
		{[]exercise.Check{unit, unit, unit, specs, specs}, []string{"0 1 2 3", "4"}},
		{[]exercise.Check{unit}, []string{"0"}},
		{[]exercise.Check{specs}, []string{"0"}},
		{[]exercise.Check{specs, specs}, []string{"0", "1"}},
	} {
		stage := &exercise.Stage{}
		for i, check := range test.checks {
			stage.Steps = append(stage.Steps, exercise.Step{ID: fmt.Sprint(i), Checks: []exercise.Check{check}})
		}
		parts := halves(stage)
		var found []string
		for _, part := range parts {
			found = append(found, strings.Join(part.steps, " "))
		}
		g.Expect(found).To(Equal(test.want))
	}
}
