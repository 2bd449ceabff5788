package crdonly

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("the status subresource", func() {
	It("leaves the spec and the generation unchanged", func(ctx SpecContext) {
		ticket := createTicket(ctx, "reported")
		set(ticket, int64(9), "spec", "number")
		set(ticket, int64(1), "status", "confirmedSeats")
		Expect(cluster.Client.Status().Update(ctx, ticket)).To(Succeed(), "the version must have the status subresource")

		stored := reread(ctx, ticket, "flights.com/v1")
		Expect(field(stored, "spec", "number")).To(BeEquivalentTo(2))
		Expect(field(stored, "status", "confirmedSeats")).To(BeEquivalentTo(1))
		Expect(stored.GetGeneration()).To(BeEquivalentTo(1))
	}, SpecTimeout(specTimeout))

	It("is the only way to write the status", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "claimed")
		set(ticket, int64(2), "status", "confirmedSeats")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		Expect(reread(ctx, ticket, "flights.com/v1").Object).NotTo(HaveKey("status"))

		set(ticket, int64(3), "spec", "number")
		set(ticket, int64(2), "status", "confirmedSeats")
		Expect(cluster.Client.Update(ctx, ticket)).To(Succeed())
		stored := reread(ctx, ticket, "flights.com/v1")
		Expect(stored.Object).NotTo(HaveKey("status"))
		Expect(field(stored, "spec", "number")).To(BeEquivalentTo(3))
		Expect(stored.GetGeneration()).To(BeEquivalentTo(2), "a change to the spec must increase the generation")
	}, SpecTimeout(specTimeout))

	It("is validated too", func(ctx SpecContext) {
		ticket := createTicket(ctx, "negative")
		set(ticket, int64(-1), "status", "confirmedSeats")
		Expect(cluster.Client.Status().Update(ctx, ticket)).
			To(MatchError(ContainSubstring("confirmedSeats in body should be greater than or equal to 0")))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the scale subresource", func() {
	It("shows the wanted and the confirmed number of seats, and the selector", func(ctx SpecContext) {
		ticket := createTicket(ctx, "scaled")
		set(ticket, int64(1), "status", "confirmedSeats")
		set(ticket, "ticket=scaled", "status", "selector")
		Expect(cluster.Client.Status().Update(ctx, ticket)).To(Succeed(), "the version must have the status subresource")

		scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
		Expect(cluster.Client.SubResource("scale").Get(ctx, ticket, scale)).To(Succeed(), "the version must have the scale subresource")
		Expect(field(scale, "spec")).To(Equal(map[string]any{"replicas": int64(2)}))
		Expect(field(scale, "status")).To(Equal(map[string]any{"replicas": int64(1), "selector": "ticket=scaled"}))
	}, SpecTimeout(specTimeout))

	It("lets kubectl scale change the number and nothing else", func(ctx SpecContext) {
		ticket := createTicket(ctx, "grown")
		Expect(cluster.Kubectl(ctx, "scale", "ft/grown", "-n", ticket.GetNamespace(), "--replicas=5")).
			To(Equal("flightticket.flights.com/grown scaled\n"))
		stored := reread(ctx, ticket, "flights.com/v1")
		set(ticket, int64(5), "spec", "number")
		Expect(field(stored, "spec")).To(Equal(field(ticket, "spec")))
	}, SpecTimeout(specTimeout))

	It("does not bypass the rules of the schema", func(ctx SpecContext) {
		ticket := createTicket(ctx, "overgrown")
		_, err := cluster.Kubectl(ctx, "scale", "ft/overgrown", "-n", ticket.GetNamespace(), "--replicas=11")
		Expect(err).To(MatchError(ContainSubstring("spec.number in body should be less than or equal to 10")))
	}, SpecTimeout(specTimeout))
})
