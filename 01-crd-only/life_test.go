package crdonly

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quietTime is how long a spec checks that something does not happen.
const quietTime = time.Second

var _ = Describe("tickets", func() {
	It("are listed, watched and deleted like any other objects", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		watcher, err := client.NewWithWatch(cluster.Config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		changes, err := watcher.Watch(ctx, newTickets(), client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		defer changes.Stop()
		expectChange := func(kind watch.EventType, name string) {
			GinkgoHelper()
			var change watch.Event
			Eventually(changes.ResultChan()).WithContext(ctx).Should(Receive(&change))
			Expect(change.Type).To(Equal(kind))
			Expect(change.Object.(client.Object).GetName()).To(Equal(name))
		}

		for i := range 2 {
			ticket := newTicket(namespace, fmt.Sprintf("ticket-%d", i))
			Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
			expectChange(watch.Added, ticket.GetName())
			set(ticket, int64(3), "spec", "number")
			Expect(cluster.Client.Update(ctx, ticket)).To(Succeed())
			expectChange(watch.Modified, ticket.GetName())
		}
		list := newTickets()
		Expect(cluster.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(list.Items).To(HaveLen(2))

		Expect(cluster.Client.DeleteAllOf(ctx, newTicket(namespace, ""), client.InNamespace(namespace))).To(Succeed())
		expectChange(watch.Deleted, "ticket-0")
		expectChange(watch.Deleted, "ticket-1")
		Expect(cluster.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(list.Items).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("don't change without a controller", func(ctx SpecContext) {
		ticket := createTicket(ctx, "alone")
		Consistently(func(g Gomega) {
			stored := reread(ctx, ticket, "flights.com/v1")
			g.Expect(stored.GetResourceVersion()).To(Equal(ticket.GetResourceVersion()), "no program may change the ticket")
			g.Expect(stored.GetGeneration()).To(BeEquivalentTo(1))
			g.Expect(stored.Object).NotTo(HaveKey("status"))
			for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.SecretList{}, &eventsv1.EventList{}} {
				g.Expect(cluster.Client.List(ctx, list, client.InNamespace(ticket.GetNamespace()))).To(Succeed())
				g.Expect(list).To(HaveField("Items", BeEmpty()))
			}
		}).WithContext(ctx).WithTimeout(quietTime).WithPolling(quietTime / 10).Should(Succeed())
	}, SpecTimeout(specTimeout))
})

func newTickets() *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "flights.com/v1", "kind": "FlightTicketList"}}
}
