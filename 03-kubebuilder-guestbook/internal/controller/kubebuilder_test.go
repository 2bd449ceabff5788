package controller

import "sigs.k8s.io/controller-runtime/pkg/client"

// k8sClient is the client that the tests use that `kubebuilder create api` adds to this package.
var k8sClient client.Client

// SetK8sClient is for the suite, which is in the package controller_test.
func SetK8sClient(cluster client.Client) { k8sClient = cluster }
