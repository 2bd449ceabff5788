package crdonly

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// tableFormat asks the API server for the rows and columns that kubectl get prints.
const tableFormat = "application/json;as=Table;v=v1;g=meta.k8s.io"

func getTable(ctx context.Context, namespace string) *metav1.Table {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	body, err := clientset.RESTClient().Get().
		AbsPath("/apis/flights.com/v1/namespaces", namespace, "flighttickets").
		SetHeader("Accept", tableFormat).Do(ctx).Raw()
	Expect(err).NotTo(HaveOccurred())
	table := &metav1.Table{}
	Expect(json.Unmarshal(body, table)).To(Succeed())
	return table
}

// columns returns the first row's values in the columns with this priority, by column name.
func columns(table *metav1.Table, priority int32) map[string]any {
	GinkgoHelper()
	Expect(table.Rows).NotTo(BeEmpty())
	values := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == priority {
			values[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return values
}

// columnNames returns the names of the columns with this priority, in the order in which kubectl shows them.
func columnNames(table *metav1.Table, priority int32) []string {
	var names []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == priority {
			names = append(names, column.Name)
		}
	}
	return names
}

var _ = Describe("reading tickets", func() {
	It("shows the columns of the definition", func(ctx SpecContext) {
		ticket := createTicket(ctx, "shown")
		//workshop:step 1.11
		set(ticket, int64(1), "status", "confirmedSeats")
		//workshop:step 1.11
		Expect(cluster.Client.Status().Update(ctx, ticket)).To(Succeed(), "the version must have the status subresource")

		table := getTable(ctx, ticket.GetNamespace())
		Expect(columnNames(table, 0)).To(HaveExactElements("Name", "From", "To", "Seats", "Class", "Booked", "Age"))
		Expect(columns(table, 0)).To(And(
			HaveKeyWithValue("Name", "shown"),
			HaveKeyWithValue("From", "ZRH"),
			HaveKeyWithValue("To", "FCO"),
			HaveKeyWithValue("Seats", BeEquivalentTo(2)),
			HaveKeyWithValue("Class", "economy"),
			HaveKeyWithValue("Booked", false),
			HaveKeyWithValue("Age", MatchRegexp(`^\d+s$`)),
		))
		//workshop:step 1.11
		Expect(columns(table, 1)).To(Equal(map[string]any{"Confirmed": 1.0}), "the column Confirmed must show status.confirmedSeats, with -o wide only")
	}, SpecTimeout(specTimeout))

	It("works by short name and category", func(ctx SpecContext) {
		ticket := createTicket(ctx, "found")
		for _, name := range []string{"ft", "flightticket", "flighttickets.v1.flights.com", "travel"} {
			Expect(cluster.Kubectl(ctx, "get", name, "-n", ticket.GetNamespace(), "-o", "name")).
				To(Equal("flightticket.flights.com/found\n"), name)
		}
	}, SpecTimeout(specTimeout))

	DescribeTable("filters by the selectable fields",
		func(ctx SpecContext, selector string, names ...string) {
			namespace := cluster.Namespace(ctx)
			for name, spec := range map[string]map[string]any{
				"one": {"from": "ZRH", "to": "FCO", "number": int64(1)},
				"two": {"from": "ZRH", "to": "OSL", "number": int64(1), "class": "first"},
				"six": {"from": "LHR", "to": "OSL", "number": int64(6)},
			} {
				Expect(cluster.Client.Create(ctx, ticketOf(namespace, name, "flights.com/v1", spec))).To(Succeed())
			}
			output, err := cluster.Kubectl(ctx, "get", "flighttickets.v1.flights.com", "-n", namespace, "--field-selector", selector, "-o", "name")
			Expect(err).NotTo(HaveOccurred())
			found := regexp.MustCompile(`(?m)/(.*)$`).FindAllStringSubmatch(output, -1)
			var got []string
			for _, match := range found {
				got = append(got, match[1])
			}
			Expect(got).To(ConsistOf(names))
		},
		Entry("one field", "spec.from=ZRH", "one", "two", SpecTimeout(specTimeout)),
		Entry("two fields", "spec.from=ZRH,spec.to=OSL", "two", SpecTimeout(specTimeout)),
		Entry("a default", "spec.class=economy", "one", "six", SpecTimeout(specTimeout)),
		Entry("all values but one", "spec.to!=OSL", "one", SpecTimeout(specTimeout)),
	)

	It("fails if it filters by another field", func(ctx SpecContext) {
		for field, value := range map[string]string{"spec.number": "2", "spec.booked": "true"} {
			_, err := cluster.Kubectl(ctx, "get", "flighttickets.v1.flights.com", "--field-selector", field+"="+value)
			Expect(err).To(MatchError(ContainSubstring("field label not supported: "+field)), "%s must not be selectable", field)
		}
	}, SpecTimeout(specTimeout))

	It("explains fields by their descriptions", func(ctx SpecContext) {
		versions := field(readDefinition(), "spec", "versions").([]any)
		highest := versions[len(versions)-1].(map[string]any)
		for path, fields := range map[string][]string{
			"ft":                       nil,
			"ft.spec":                  {"properties", "spec"},
			"ft.spec.number":           {"properties", "spec", "properties", "number"},
			"ft.spec.booked":           {"properties", "spec", "properties", "booked"},
			"ft.status.confirmedSeats": {"properties", "status", "properties", "confirmedSeats"},
		} {
			fields = slices.Concat([]string{"schema", "openAPIV3Schema"}, fields, []string{"description"})
			description, _, err := unstructured.NestedString(highest, fields...)
			Expect(err).NotTo(HaveOccurred())
			// The API server publishes the schema a moment after it starts to serve the kind. kubectl breaks long lines.
			Eventually(func() (string, error) {
				explained, err := cluster.Kubectl(ctx, "explain", path)
				return strings.Join(strings.Fields(explained), " "), err
			}).WithContext(ctx).Should(ContainSubstring(description), path)
		}
	}, SpecTimeout(specTimeout))
})
