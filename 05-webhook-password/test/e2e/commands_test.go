//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"

	"example.com/operator-workshop/operatortest/incluster"
)

// field returns the field at a JSONPath of an object in passwordNamespace.
func field(ctx context.Context, object, path string) string {
	GinkgoHelper()
	return incluster.Field(ctx, passwordNamespace, object, "{"+path+"}")
}

// dryRun creates an object in a dry run. A warning counts as an error.
func dryRun(ctx context.Context, manifest string) error {
	_, err := incluster.KubectlWith(ctx, manifest, "create", "--dry-run=server", "--warnings-as-errors", "--namespace="+passwordNamespace)
	return err
}
