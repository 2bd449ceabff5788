package testcluster_test

import (
	"context"
	"fmt"

	"example.com/operator-workshop/operatortest/testcluster"
)

// A test suite calls Start in its BeforeSuite, and Stop when it ends; other programs can call them as this example
// does.
func ExampleCluster() {
	ctx := context.Background()
	cluster := &testcluster.Cluster{CRDs: []string{"testdata/crd"}}
	defer func() { _ = cluster.Stop() }()
	if err := cluster.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	resources, err := cluster.Kubectl(ctx, "api-resources", "--api-group=test.example.com", "-o", "name")
	fmt.Println(resources, err)
}
