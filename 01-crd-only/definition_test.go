package crdonly

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// smallDefinition is a valid definition, into which a spec can introduce a mistake.
const smallDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mistakes.flights.com}
spec:
  group: flights.com
  scope: Namespaced
  names: {kind: Mistake, listKind: MistakeList, plural: mistakes, singular: mistake}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
`

var strict = client.FieldValidation("Strict")

var _ = Describe("a common mistake in a definition", func() {
	It("is refused if the schema is outside the versions", func(ctx SpecContext) {
		definition := parse(smallDefinition)
		version := field(definition, "spec", "versions").([]any)[0].(map[string]any)
		set(definition, version["schema"], "spec", "schema")
		delete(version, "schema")
		Expect(cluster.Client.Create(ctx, definition.DeepCopy(), client.DryRunAll, strict)).
			To(MatchError(ContainSubstring(`unknown field "spec.schema"`)))
		Expect(cluster.Client.Create(ctx, definition, client.DryRunAll)).
			To(MatchError(ContainSubstring("spec.versions[0].schema.openAPIV3Schema: Required value")))
	}, SpecTimeout(specTimeout))

	It("is refused in strict mode, and otherwise ignored, if shortNames has a lower-case n", func(ctx SpecContext) {
		definition := parse(smallDefinition)
		set(definition, []any{"ms"}, "spec", "names", "shortnames")
		Expect(cluster.Client.Create(ctx, definition.DeepCopy(), client.DryRunAll, strict)).
			To(MatchError(ContainSubstring(`unknown field "spec.names.shortnames"`)))
		Expect(cluster.Client.Create(ctx, definition, client.DryRunAll)).To(Succeed())
		Expect(field(definition, "spec", "names")).NotTo(Or(HaveKey("shortnames"), HaveKey("shortNames")))
	}, SpecTimeout(specTimeout))

	It("lets clients create an empty object if no field is required", func(ctx SpecContext) {
		install(ctx, parse(smallDefinition))
		empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "flights.com/v1", "kind": "Mistake"}}
		empty.SetNamespace(cluster.Namespace(ctx))
		empty.SetName("empty")
		Expect(apply(ctx, empty)).To(Succeed())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("a rule that is added later", func() {
	It("allows changes to other fields of an old ticket that breaks it", func(ctx SpecContext) {
		definition := copyDefinition("ratchet.flights.com")
		install(ctx, definition)
		ticket := ticketOf(cluster.Namespace(ctx), "old", "ratchet.flights.com/v1",
			map[string]any{"from": "ZRH", "to": "FCO", "number": int64(9)})
		Expect(apply(ctx, ticket)).To(Succeed())

		v1 := field(definition, "spec", "versions").([]any)[0].(map[string]any)
		Expect(unstructured.SetNestedField(v1, int64(4), "schema", "openAPIV3Schema", "properties", "spec", "properties", "number", "maximum")).To(Succeed())
		Expect(cluster.Client.Update(ctx, definition)).To(Succeed())
		Eventually(func() error {
			fresh := ticketOf(ticket.GetNamespace(), "fresh", "ratchet.flights.com/v1", map[string]any{"from": "ZRH", "to": "FCO", "number": int64(9)})
			return apply(ctx, fresh, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("should be less than or equal to 4")), "a new ticket must follow the rule")

		ticket = reread(ctx, ticket, "ratchet.flights.com/v1")
		set(ticket, "first", "spec", "class")
		Expect(cluster.Client.Update(ctx, ticket)).To(Succeed(), "the old ticket may keep its number")
		set(ticket, int64(8), "spec", "number")
		Expect(cluster.Client.Update(ctx, ticket)).
			To(MatchError(ContainSubstring("should be less than or equal to 4")), "the old ticket may not get another invalid number")
	}, SpecTimeout(specTimeout))
})

// copyDefinition returns a copy of the stage's definition, in the given group and without short names and categories,
// for a spec to change.
func copyDefinition(group string) *unstructured.Unstructured {
	GinkgoHelper()
	definition := readDefinition()
	definition.SetName("flighttickets." + group)
	set(definition, group, "spec", "group")
	// Otherwise, ft and travel would also refer to this kind in specs that call kubectl.
	unstructured.RemoveNestedField(definition.Object, "spec", "names", "shortNames")
	unstructured.RemoveNestedField(definition.Object, "spec", "names", "categories")
	return definition
}

// apply uses server-side apply to create an object of a kind that has only just been defined. The API server would
// delay a plain create by 2 seconds, because other API servers of the cluster may not know the definition yet.
func apply(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	return cluster.Client.Apply(ctx, configuration, append(options, client.FieldOwner("crdonly"))...)
}

// install creates a definition, waits until the API server serves the kind, and deletes the definition when the spec
// ends.
func install(ctx context.Context, definition *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(cluster.Client.Create(ctx, definition)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(cluster.Client.Delete(ctx, definition))).To(Succeed())
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": field(definition, "spec", "group").(string) + "/v1",
		"kind":       field(definition, "spec", "names", "listKind"),
	}}
	Eventually(cluster.Client.List).WithContext(ctx).WithArguments(list).Should(Succeed())
	// Get the definition again, because the API server has written its status since.
	Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
}
