package config_test

import (
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/config"
)

// The file's CEL expressions become functions.
func ExampleLoad() {
	operator, err := config.Load("../examples/shell/operatortest.yaml", "")
	if err != nil {
		log.Fatal(err)
	}
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "hello", "generation": int64(2)},
		"status":   map[string]any{"phase": "Greeted", "observedGeneration": int64(1)},
	}}
	child := operator.Children[0]
	fmt.Println(child.Kind.Kind, child.NameFor(greeting))
	fmt.Println("converged:", operator.Converged(greeting) == nil)
	// Output:
	// ConfigMap hello-greeting
	// converged: false
}

func ExampleWords() {
	words := config.Words("operatortest run -f operatortest.yaml")
	fmt.Println(words("declare Operator.Values for the field; to try this behaviour alone: go test -ginkgo.label-filter=crash"))
	// Output:
	// declare values for the field; to try this behaviour alone: operatortest run -f operatortest.yaml --only=crash
}
