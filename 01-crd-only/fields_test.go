package crdonly

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("the fields of a ticket", func() {
	It("get their defaults when they are left out", func(ctx SpecContext) {
		ticket := reread(ctx, createTicket(ctx, "plain"), "flights.com/v1")
		Expect(field(ticket, "spec", "class")).To(Equal("economy"))
		Expect(field(ticket, "spec", "booked")).To(BeFalse())
	}, SpecTimeout(specTimeout))

	It("keep what the traveller chose instead of a default", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "chosen")
		set(ticket, "first", "spec", "class")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "class")).To(Equal("first"))
	}, SpecTimeout(specTimeout))

	It("get the default instead of null, unless they are nullable", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "nothing")
		set(ticket, nil, "spec", "class")
		set(ticket, nil, "spec", "returnDate")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		spec := field(reread(ctx, ticket, "flights.com/v1"), "spec")
		Expect(spec).To(HaveKeyWithValue("class", "economy"))
		Expect(spec).To(HaveKeyWithValue("returnDate", BeNil()), "a nullable field must keep null")
	}, SpecTimeout(specTimeout))

	It("stay absent when they are optional and left out", func(ctx SpecContext) {
		ticket := reread(ctx, createTicket(ctx, "one-way"), "flights.com/v1")
		Expect(field(ticket, "spec")).NotTo(HaveKey("returnDate"))
		Expect(field(ticket, "spec")).NotTo(Or(HaveKey("preferences"), HaveKey("airlineData"), HaveKey("passengers")))
	}, SpecTimeout(specTimeout))

	It("are dropped when the schema does not know them", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "pruned")
		set(ticket, "12A", "spec", "noSuchField")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec")).NotTo(HaveKey("noSuchField"))
	}, SpecTimeout(specTimeout))

	It("are refused under strict validation when the schema does not know them", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "strict")
		set(ticket, "12A", "spec", "noSuchField")
		Expect(cluster.Client.Create(ctx, ticket, client.FieldValidation("Strict"))).
			To(MatchError(ContainSubstring(`strict decoding error: unknown field "spec.noSuchField"`)))
	}, SpecTimeout(specTimeout))

	It("are kept inside preferences and airlineData, whatever their name", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "kept")
		wishes := map[string]any{"meal": "vegetarian", "wheelchair": "to the gate"}
		set(ticket, wishes, "spec", "preferences")
		data := map[string]any{"fare": map[string]any{"refundable": true}, "segments": []any{"LX1612"}}
		set(ticket, data, "spec", "airlineData")
		Expect(cluster.Client.Create(ctx, ticket, client.FieldValidation("Strict"))).To(Succeed())
		stored := reread(ctx, ticket, "flights.com/v1")
		Expect(field(stored, "spec", "preferences")).To(Equal(wishes))
		Expect(field(stored, "spec", "airlineData")).To(Equal(data))
	}, SpecTimeout(specTimeout))

	It("let two clients each apply a passenger of their own", func(ctx SpecContext) {
		ticket := createTicket(ctx, "shared")
		for _, name := range []string{"Anna", "Ben"} {
			applied := ticketOf(ticket.GetNamespace(), "shared", "flights.com/v1", map[string]any{
				"passengers": []any{map[string]any{"name": name}},
			})
			Expect(cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(name))).To(Succeed())
		}
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "passengers")).To(ConsistOf(
			HaveKeyWithValue("name", "Anna"), HaveKeyWithValue("name", "Ben")))
	}, SpecTimeout(specTimeout))

	DescribeTable("accept valid values, including those at a limit",
		func(ctx SpecContext, name string, value any) {
			ticket := newTicket(cluster.Namespace(ctx), "limit")
			set(ticket, value, "spec", name)
			Expect(cluster.Client.Create(ctx, ticket, client.FieldValidation("Strict"))).To(Succeed())
		},
		Entry("the smallest number", "number", int64(1), SpecTimeout(specTimeout)),
		Entry("the largest number", "number", int64(10), SpecTimeout(specTimeout)),
		Entry("first class", "class", "first", SpecTimeout(specTimeout)),
		Entry("business class", "class", "business", SpecTimeout(specTimeout)),
		Entry("a leap day", "returnDate", "2028-02-29", SpecTimeout(specTimeout)),
	)

	It("can change, but the route of a booked ticket can't", func(ctx SpecContext) {
		ticket := createTicket(ctx, "changing")
		set(ticket, "OSL", "spec", "to")
		Expect(cluster.Client.Update(ctx, ticket)).To(Succeed(), "the route may change while the ticket is not booked")
		set(ticket, true, "spec", "booked")
		set(ticket, "LIS", "spec", "to")
		Expect(cluster.Client.Update(ctx, ticket)).To(Succeed(), "the rule looks at the ticket as it was before the change")

		set(ticket, int64(5), "spec", "number")
		Expect(cluster.Client.Update(ctx, ticket)).To(Succeed(), "the number of seats of a booked ticket may change")
		set(ticket, "BCN", "spec", "from")
		Expect(cluster.Client.Update(ctx, ticket)).
			To(MatchError(ContainSubstring("the route of a booked ticket is fixed")))
	}, SpecTimeout(specTimeout))
})
