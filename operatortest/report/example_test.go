package report_test

import (
	"fmt"
	"os"

	"example.com/operator-workshop/operatortest/report"
)

// Package behaviours makes such reports.
func ExampleReport_WriteFailures() {
	made := &report.Report{Seed: 1, Seconds: 12, Behaviours: []report.Behaviour{
		{Name: "converges", Result: report.Passed, Trials: []report.Trial{{ID: "converges/sample", Result: report.Passed, Requests: 9}}},
		{
			Name: "drift", Result: report.Failed, Failure: `behaviour "drift": the operator undoes changes to its children`,
			Trials: []report.Trial{{ID: "drift/configmap-deleted", Result: report.Failed, Requests: 7, Replay: "operatortest run -f operatortest.yaml --trial drift/configmap-deleted"}},
		},
	}}
	if err := made.WriteFailures(os.Stdout); err != nil {
		fmt.Println(err)
	}
	fmt.Println("passed:", made.Passed())
	// Output:
	// behaviour "drift": the operator undoes changes to its children
	// to run a trial alone: operatortest run -f operatortest.yaml --trial drift/configmap-deleted
	//
	// 2 trials and 16 requests in 12 s, seed 1
	// passed: false
}
