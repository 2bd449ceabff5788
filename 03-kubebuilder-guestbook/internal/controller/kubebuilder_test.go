package controller

import "sigs.k8s.io/controller-runtime/pkg/client"

// k8sClient is for the tests that `kubebuilder create api` adds to this package.
var k8sClient client.Client

// SetK8sClient lets the suite, which is in the package controller_test, set k8sClient.
func SetK8sClient(cluster client.Client) { k8sClient = cluster }
