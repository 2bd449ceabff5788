// Command scheme decodes the YAML of a Foo twice. With a scheme that doesn't know the kind, that fails on purpose; with
// one that does, the result is a Go value. The command sends no requests, but like all examples, it needs a kubeconfig.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

func main() { example.Main(decode) }

func decode(_ context.Context, _ example.Cluster, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("name one file with a Foo")
	}
	manifest, err := os.ReadFile(arguments[0])
	if err != nil {
		return fmt.Errorf("read the Foo: %w", err)
	}
	_, _, err = clientgoscheme.Codecs.UniversalDeserializer().Decode(manifest, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		fmt.Println("The scheme of client-go does not know the kind.")
	}

	scheme := runtime.NewScheme()
	if err := examplev1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register our types: %w", err)
	}
	object, kind, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(manifest, nil, nil)
	if err != nil {
		return fmt.Errorf("decode %s: %w", arguments[0], err)
	}
	fmt.Printf("After AddToScheme, %s is a %T.\n", kind, object)
	return nil
}
