package operatortest_test

import (
	"context"
	"fmt"

	"example.com/operator-workshop/operatortest"
)

// A suite calls Start in its BeforeSuite and Stop after it; so can any other program.
func ExampleCluster() {
	ctx := context.Background()
	cluster := &operatortest.Cluster{CRDs: []string{"testdata/crd"}}
	defer func() { _ = cluster.Stop() }()
	if err := cluster.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	resources, err := cluster.Kubectl(ctx, "api-resources", "--api-group=test.example.com", "-o", "name")
	fmt.Println(resources, err)
}
