// Package crdonly tests an API without a controller: what the API server alone
// does with a CustomResourceDefinition.
package crdonly

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/behaviours"
	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	definitionFile = "config/crd/flighttickets.flights.com.yaml"
	// specTimeout bounds each spec. Most specs take a few milliseconds.
	specTimeout = 30 * time.Second
)

var operator = operatortest.Operator{
	CRDs:           []string{"config/crd"},
	Samples:        "config/samples",
	InvalidSamples: "config/samples/invalid",
}

var cluster = &testcluster.Cluster{CRDs: operator.CRDs}

func TestFlightTicket(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	RunSpecs(t, "FlightTicket")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
})

var _ = Describe("the definition", func() {
	behaviours.DescribeSchema(operator, cluster)
})

// newTicket returns a valid ticket in version v1, but doesn't create it.
func newTicket(namespace, name string) *unstructured.Unstructured {
	return ticketOf(namespace, name, "flights.com/v1", map[string]any{"from": "ZRH", "to": "FCO", "number": int64(2)})
}

func ticketOf(namespace, name, version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version,
		"kind":       "FlightTicket",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       spec,
	}}
}

// createTicket creates a namespace, and a valid ticket in it.
func createTicket(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	ticket := newTicket(cluster.Namespace(ctx), name)
	Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
	return ticket
}

func set(object *unstructured.Unstructured, value any, fields ...string) {
	GinkgoHelper()
	Expect(unstructured.SetNestedField(object.Object, value, fields...)).To(Succeed())
}

// field reads one field of an object. It returns nil if the field is missing or null.
func field(object *unstructured.Unstructured, fields ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// reread gets the object again, converted to the given version.
func reread(ctx context.Context, object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	GinkgoHelper()
	stored := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": object.GetKind()}}
	Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), stored)).To(Succeed())
	return stored
}

func readDefinition() *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(definitionFile)
	Expect(err).NotTo(HaveOccurred())
	return parse(string(content))
}

func parse(text string) *unstructured.Unstructured {
	GinkgoHelper()
	object, err := decode([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return object
}
