package crdonly

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/json"
)

// With conversion None the API server changes apiVersion and nothing else. What
// the other version calls by another name is lost to its readers, and lost for
// good when they write. Stage 5 has a conversion webhook, which carries it over.
var _ = Describe("two versions with conversion None", func() {
	It("hide the class of a v1 ticket from those who read v2", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "old")
		set(ticket, "first", "spec", "class")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())

		asV2 := reread(ctx, ticket, "flights.com/v2")
		Expect(asV2.GetUID()).To(Equal(ticket.GetUID()), "it is the same object")
		Expect(field(asV2, "spec")).NotTo(Or(HaveKey("cabin"), HaveKey("class")))
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "class")).To(Equal("first"), "reading loses nothing")
	}, SpecTimeout(specTimeout))

	It("lose the class of a v1 ticket that is written in v2", func(ctx SpecContext) {
		ticket := newTicket(cluster.Namespace(ctx), "old")
		set(ticket, "first", "spec", "class")
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())

		asV2 := reread(ctx, ticket, "flights.com/v2")
		set(asV2, int64(3), "spec", "number")
		Expect(cluster.Client.Update(ctx, asV2)).To(Succeed())
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "class")).To(Equal("economy"))
	}, SpecTimeout(specTimeout))

	It("lose the cabin of a v2 ticket at once, as v1 is what is stored", func(ctx SpecContext) {
		spec := map[string]any{"from": "ZRH", "to": "LIS", "number": int64(3), "cabin": "business"}
		ticket := ticketOf(cluster.Namespace(ctx), "new", "flights.com/v2", spec)
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "class")).To(Equal("economy"))
		Expect(field(reread(ctx, ticket, "flights.com/v2"), "spec")).NotTo(HaveKey("cabin"))
	}, SpecTimeout(specTimeout))

	It("have the same rules, so that none can be got round in the other version", func() {
		versions := field(readDefinition(), "spec", "versions").([]any)
		v1, v2 := versions[0].(map[string]any), versions[1].(map[string]any)
		for _, version := range []map[string]any{v1, v2} {
			delete(version, "name")
			delete(version, "storage")
		}
		text, err := json.Marshal(v1)
		Expect(err).NotTo(HaveOccurred())
		renamed := strings.NewReplacer(
			`"class"`, `"cabin"`, `.class`, `.cabin`, `"Class"`, `"Cabin"`,
			`The class of travel.`, `The class of travel. It was called class in v1.`,
		).Replace(string(text))
		var expected map[string]any
		Expect(json.Unmarshal([]byte(renamed), &expected)).To(Succeed())
		Expect(differences("v2", v2, expected)).To(BeEmpty(), "change both versions in "+definitionFile+" alike")
	})

	It("make kubectl speak v2, the higher one", func(ctx SpecContext) {
		ticket := createTicket(ctx, "seen")
		Expect(cluster.Kubectl(ctx, "get", "ft/seen", "-n", ticket.GetNamespace(), "-o", "jsonpath={.apiVersion}")).
			To(Equal("flights.com/v2"))
		Expect(cluster.Kubectl(ctx, "get", "flighttickets.v1.flights.com/seen", "-n", ticket.GetNamespace(), "-o", "jsonpath={.apiVersion}")).
			To(Equal("flights.com/v1"))
	}, SpecTimeout(specTimeout))
})

// differences lists the paths at which a value of YAML is not as expected.
func differences(path string, value, expected any) []string {
	found, isMap := value.(map[string]any)
	wanted, both := expected.(map[string]any)
	if !isMap || !both {
		if reflect.DeepEqual(value, expected) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %v, expected %v as in v1", path, value, expected)}
	}
	names := maps.Clone(found)
	maps.Copy(names, wanted)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, differences(path+"."+name, found[name], wanted[name])...)
	}
	return all
}
