package doks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

// body returns a create request with some of its fields replaced. A field without a value is removed.
func body(fields ...string) string {
	values := map[string]string{
		"name": `"demo"`, "region": `"nyc1"`, "version": `"1.35"`,
		"node_pools": `[` + pool() + `]`,
	}
	return object(values, fields)
}

func pool(fields ...string) string {
	return object(map[string]string{"name": `"workers"`, "size": `"s-2vcpu-4gb"`, "count": "1"}, fields)
}

func object(values map[string]string, fields []string) string {
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	written := []string{}
	for name, value := range values {
		if value != "" {
			written = append(written, fmt.Sprintf("%q: %s", name, value))
		}
	}
	return "{" + strings.Join(written, ", ") + "}"
}

func TestRefusedCreates(t *testing.T) {
	cases := map[string]struct {
		body    string
		status  int
		message string
	}{
		"no JSON":                      {"{", 400, "the body is not valid JSON"},
		"no body":                      {"", 400, "the body is not valid JSON"},
		"a list":                       {"[]", 400, "cannot be of type array"},
		"a name that is a number":      {body("name=1"), 400, "the field name cannot be of type number"},
		"a name that is missing":       {body("name="), 422, "validation error: name is required"},
		"a name with capitals":         {body(`name="Demo"`), 422, "validation error: name must consist of"},
		"a name that ends with a dash": {body(`name="demo-"`), 422, "validation error: name must consist of"},
		"a name of 64 letters":         {body(`name="` + strings.Repeat("a", 64) + `"`), 422, "validation error: name must consist of"},
		"a tag with a dot":             {body(`tags=["a.b"]`), 422, "validation error: invalid tag"},
		"a tag of 256 letters":         {body(`tags=["` + strings.Repeat("a", 256) + `"]`), 422, "validation error: invalid tag"},
		"a name with a line feed":      {body(`name="demo\n"`), 422, "validation error: name must consist of"},
		"an unknown region":            {body(`region="mars1"`), 422, "validation error: invalid region"},
		"no region":                    {body("region="), 422, "validation error: invalid region"},
		"an unknown version":           {body(`version="1.2.3-do.0"`), 422, "validation error: invalid version slug"},
		"a prefix of a minor version":  {body(`version="1.3"`), 422, "validation error: invalid version slug"},
		"no version":                   {body("version="), 422, "validation error: invalid version slug"},
		"a VPC that is not a UUID":     {body(`vpc_uuid="x"`), 422, "validation error: invalid VPC or subnet UUID"},
		"an invalid subnet":            {body(`cluster_subnet="x"`), 422, "validation error: invalid subnet"},
		"no pools":                     {body("node_pools="), 422, "validation error: at least one node pool is required"},
		"an empty list of pools":       {body("node_pools=[]"), 422, "validation error: at least one node pool is required"},
		"a pool without a name":        {body("node_pools=[" + pool("name=") + "]"), 422, "validation error: worker_node_pool_specs[0].pool name is required"},
		"a pool's name of 56 letters":  {body("node_pools=[" + pool(`name="`+strings.Repeat("a", 56)+`"`) + "]"), 422, "validation error: worker_node_pool_specs[0].pool names cannot be greater than 55 characters"},
		"a pool's name with a space":   {body("node_pools=[" + pool(`name="a b"`) + "]"), 422, "validation error: worker_node_pool_specs[0].invalid pool name"},
		"an unknown size":              {body("node_pools=[" + pool(`size="huge"`) + "]"), 422, "validation error: worker_node_pool_specs[0].invalid droplet size"},
		"an unknown size in pool 2":    {body("node_pools=[" + pool() + "," + pool(`name="b"`, `size="huge"`) + "]"), 422, "validation error: worker_node_pool_specs[1].invalid droplet size"},
		"two pools of the same name":   {body("node_pools=[" + pool() + "," + pool() + "]"), 422, "validation error: worker_node_pool_specs[1].pool names must be unique"},
		"no count":                     {body("node_pools=[" + pool("count=") + "]"), 422, "validation error: worker_node_pool_specs[0].count must be greater than or equal to 1"},
		"a negative count":             {body("node_pools=[" + pool("count=-1") + "]"), 422, "validation error: worker_node_pool_specs[0].count must be greater than or equal to 1"},
		"a count far beyond the limit": {body("node_pools=[" + pool("count=1000000000") + "]"), 422, "desired nodes exceed limits, 1000000000 additional nodes but not enough available droplet limit"},
		"a taint without a key":        {body("node_pools=[" + pool(`taints=[{"effect":"NoSchedule"}]`) + "]"), 422, "validation error: worker_node_pool_specs[0].invalid taint"},
		"a taint of an unknown effect": {body("node_pools=[" + pool(`taints=[{"key":"a","effect":"Never"}]`) + "]"), 422, "validation error: worker_node_pool_specs[0].invalid taint"},
		"no minimum number of nodes":   {body("node_pools=[" + pool("auto_scale=true", "max_nodes=3") + "]"), 422, "worker_node_pool_spec.min nodes must be greater than or equal to 1"},
		"a maximum below the minimum":  {body("node_pools=[" + pool("auto_scale=true", "min_nodes=3", "max_nodes=2", "count=3") + "]"), 422, "worker_node_pool_spec.max nodes must be greater than or equal to min nodes"},
		"a count outside its bounds":   {body("node_pools=[" + pool("auto_scale=true", "min_nodes=2", "max_nodes=3", "count=4") + "]"), 422, "worker_node_pool_spec.count must be between min nodes and max nodes"},
		"bounds beyond the limit":      {body("node_pools=[" + pool("auto_scale=true", "min_nodes=1", "max_nodes=11", "count=1") + "]"), 422, "autoscale desired max nodes exceed limits, 11 additional nodes but not enough available droplet limit"},
		"an unknown maintenance day":   {body(`maintenance_policy={"day":"someday"}`), 422, "validation error: invalid maintenance policy day"},
		"an impossible time":           {body(`maintenance_policy={"start_time":"25:00"}`), 422, "validation error: invalid maintenance policy start time"},
		"an unknown expander":          {body(`cluster_autoscaler_configuration={"expanders":["best"]}`), 422, "validation error: invalid cluster autoscaler expander"},
		"a plugin that is a number":    {body(`routing_agent=1`), 400, "cannot be of type number"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			got := l.do("POST", clustersURL, c.body)
			l.Expect(got.text).To(ContainSubstring(c.message))
			l.Expect(got.status).To(Equal(c.status))
			l.Expect(l.cloud.Clusters()).To(BeEmpty())
			l.Expect(l.cloud.Effective("create cluster")).To(BeEmpty())
		})
	}
}

func TestNamesAreUniqueUntilADeletionEnds(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.EndState = doks.StateError })
	made := l.create("demo", 1)
	l.clock.Step(time.Minute)
	l.Expect(string(l.get(made.ID).Status.State)).To(Equal("error"))
	refused := l.do("POST", clustersURL, body())
	l.Expect(refused.status).To(Equal(http.StatusUnprocessableEntity))
	l.Expect(refused.body).To(HaveKeyWithValue("message", "a cluster with this name already exists"))
	l.Expect(refused.body).To(HaveKeyWithValue("id", "unprocessable_entity"))

	l.Expect(l.do("DELETE", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNoContent))
	l.Expect(l.do("POST", clustersURL, body()).status).To(Equal(http.StatusUnprocessableEntity), "the name must be taken until the deletion ends")
	l.clock.Step(time.Second)
	l.Expect(l.do("POST", clustersURL, body()).status).To(Equal(http.StatusCreated))
}

func TestVersionsAndHighAvailability(t *testing.T) {
	cases := map[string]struct {
		fields []string
		slug   string
		ha     bool
	}{
		"a slug": {[]string{`version="1.36.3-do.0"`}, "1.36.3-do.0", true},
		"a minor version without high availability by default": {[]string{`version="1.35"`}, "1.35.9-do.2", false},
		"a minor version with high availability by default":    {[]string{`version="1.36"`}, "1.36.5-do.1", true},
		"the latest":                  {[]string{`version="latest"`}, "1.37.1-do.0", true},
		"high availability requested": {[]string{`version="1.35"`, "ha=true"}, "1.35.9-do.2", true},
		"high availability declined":  {[]string{`version="1.37"`, "ha=false"}, "1.37.1-do.0", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Expect(l.do("POST", clustersURL, body(c.fields...)).status).To(Equal(http.StatusCreated))
			l.clock.Step(time.Minute)
			made := l.cloud.Clusters()[0]
			l.Expect(made.Version).To(Equal(c.slug))
			l.Expect(made.HA).To(Equal(c.ha))
			address := "203.0.113.10"
			if c.ha {
				address = "" // a highly available cluster has more than one
			}
			l.Expect(made.IPv4).To(Equal(address))
			l.Expect(made.Endpoint).NotTo(BeEmpty())
		})
	}
}

func TestRepliesHaveEmptyListsInsteadOfNull(t *testing.T) {
	l := newLab(t)
	empty := l.do("GET", clustersURL, "")
	l.Expect(empty.text).To(ContainSubstring(`"kubernetes_clusters":[]`))
	l.Expect(empty.text).To(ContainSubstring(`"links":{}`))
	made := l.do("POST", clustersURL, body("tags=null"))
	l.Expect(made.text).To(ContainSubstring(`"taints":[]`))
	l.Expect(made.text).To(ContainSubstring(`"labels":null`))
	id := l.cloud.Clusters()[0].ID
	l.Expect(l.do("GET", clustersURL+"/"+id+"/destroy_with_associated_resources", "").text).To(
		MatchJSON(`{"load_balancers":[],"volumes":[],"volume_snapshots":[]}`))
	l.Expect(l.do("GET", clustersURL+"/"+id+"/status_messages", "").text).To(MatchJSON(`{"messages":[]}`))
}
