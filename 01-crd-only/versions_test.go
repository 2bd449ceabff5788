package crdonly

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// conversionSample contains one ticket at three points in time: created in v1, read in v2, and read in v1 after a write
// in v2.
const conversionSample = "config/samples/conversion/seat-given-back.yaml"

// With conversion None, the API server changes only apiVersion. v2 renames a field of v1, so clients of v2 don't see
// the field's value, and lose it when they write. The conversion webhook of stage 5 keeps such values.
var _ = Describe("two versions with conversion None", func() {
	It("change a ticket as "+conversionSample+" shows", func(ctx SpecContext) {
		looks, _, err := readObjects(conversionSample)
		Expect(err).NotTo(HaveOccurred())
		Expect(looks).To(HaveLen(3), "the file must show one ticket at three points in time")
		ticket := looks[0]
		ticket.SetNamespace(cluster.Namespace(ctx))
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())

		asV2 := reread(ctx, ticket, "flights.com/v2")
		expectLook(2, looks[1], asV2)
		set(asV2, int64(9), "spec", "number")
		Expect(cluster.Client.Update(ctx, asV2)).To(Succeed())
		expectLook(3, looks[2], reread(ctx, ticket, "flights.com/v1"))
	}, SpecTimeout(specTimeout))

	It("lose the cabin of a v2 ticket immediately, because v1 is the stored version", func(ctx SpecContext) {
		spec := map[string]any{"from": "ZRH", "to": "LIS", "number": int64(3), "cabin": "business"}
		ticket := ticketOf(cluster.Namespace(ctx), "new", "flights.com/v2", spec)
		Expect(cluster.Client.Create(ctx, ticket)).To(Succeed())
		Expect(field(reread(ctx, ticket, "flights.com/v1"), "spec", "class")).To(Equal("economy"))
		Expect(field(reread(ctx, ticket, "flights.com/v2"), "spec")).NotTo(HaveKey("cabin"))
	}, SpecTimeout(specTimeout))

	It("make kubectl use v2, the higher version", func(ctx SpecContext) {
		ticket := createTicket(ctx, "seen")
		Expect(cluster.Kubectl(ctx, "get", "ft/seen", "-n", ticket.GetNamespace(), "-o", "jsonpath={.apiVersion}")).
			To(Equal("flights.com/v2"))
		Expect(cluster.Kubectl(ctx, "get", "flighttickets.v1.flights.com/seen", "-n", ticket.GetNamespace(), "-o", "jsonpath={.apiVersion}")).
			To(Equal("flights.com/v1"))
	}, SpecTimeout(specTimeout))
})

// expectLook fails unless look, a document of conversionSample, shows the spec that was found. The failure names the
// fields that are wrong in the file, but not their correct values: learners should find these themselves.
func expectLook(number int, look, found *unstructured.Unstructured) {
	GinkgoHelper()
	said, _, err := unstructured.NestedMap(look.Object, "spec")
	Expect(err).NotTo(HaveOccurred())
	if len(said) == 0 {
		Fail(fmt.Sprintf("document %d of %s has no spec: predict all its fields", number, conversionSample))
	}
	actual := field(found, "spec").(map[string]any)
	names := map[string]any{}
	maps.Copy(names, said)
	maps.Copy(names, actual)
	for name := range names {
		_, expected := said[name]
		_, is := actual[name]
		if expected == is && reflect.DeepEqual(said[name], actual[name]) {
			delete(names, name)
		}
	}
	if len(names) > 0 {
		Fail(fmt.Sprintf("document %d of %s is not what the API server answers: look at %s, which may be missing, superfluous or different",
			number, conversionSample, strings.Join(slices.Sorted(maps.Keys(names)), ", ")))
	}
}

// TestVersionsAreAlike fails if the versions differ in more than their own names, the descriptions, which of them is
// stored, and the name of one field and of its column: class or cabin. If only one version had a rule, a client could
// bypass the rule by writing in the other version.
func TestVersionsAreAlike(t *testing.T) {
	mustRead(t)
	objects, _, err := readObjects(definitionFile)
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "versions")
	if err != nil || len(versions) != 2 {
		t.Fatalf("%s must have two versions, but has %d (error: %v)", definitionFile, len(versions), err)
	}
	v1, v2 := versions[0].(map[string]any), versions[1].(map[string]any)
	if v1["name"] != "v1" || v2["name"] != "v2" {
		t.Fatalf("the versions must be v1 and v2, but are %v and %v", v1["name"], v2["name"])
	}
	text, err := json.Marshal(v1)
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.NewReplacer(`"class"`, `"cabin"`, `.class`, `.cabin`, `"Class"`, `"Cabin"`).Replace(string(text))
	var expected map[string]any
	if err := json.Unmarshal([]byte(renamed), &expected); err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences("v2", v2, expected) {
		t.Error(difference)
	}
}

// differences returns a message for each path at which v2 is not as expected. It ignores the version's name and storage,
// and all descriptions.
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
		if name == "description" || path == "v2" && (name == "name" || name == "storage") {
			continue
		}
		all = append(all, differences(path+"."+name, found[name], wanted[name])...)
	}
	return all
}
