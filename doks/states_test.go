package doks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

func TestProvisioningEndsWhenItIsDue(t *testing.T) {
	for _, end := range []doks.State{doks.StateRunning, doks.StateDegraded, doks.StateError} {
		t.Run("in "+string(end), func(t *testing.T) {
			l := newLab(t, func(o *doks.Options) { o.EndState = end })
			made := l.create("demo", 2)
			l.clock.Step(3*time.Second - time.Nanosecond)
			before := l.get(made.ID)
			l.Expect(string(before.Status.State)).To(Equal("provisioning"))
			l.Expect(before.Status.Message).To(Equal("provisioning"))
			l.clock.Step(time.Nanosecond)
			after := l.get(made.ID)
			l.Expect(string(after.Status.State)).To(Equal(string(end)))
			endpoint := "https://" + made.ID + ".k8s.invalid"
			if end == doks.StateError {
				endpoint = "" // a cluster that failed has no address
			}
			l.Expect(after.Endpoint).To(Equal(endpoint))
			l.Expect(after.UpdatedAt).To(Equal(beginning.Add(3 * time.Second)))
			l.Expect(states(after)).To(HaveEach("provisioning"))
			l.clock.Step(time.Second)
			nodes := "running"
			if end == doks.StateError {
				nodes = "provisioning"
			}
			l.Expect(states(l.get(made.ID))).To(HaveEach(nodes), "nodes must follow their control plane")
		})
	}
}

func TestStatesDuringADeletion(t *testing.T) {
	cases := map[string]struct {
		state doks.State
		seen  int
	}{
		"is seen as deleted for a while":  {doks.StateDeleted, http.StatusOK},
		"is seen as deleting for a while": {doks.StateDeleting, http.StatusOK},
		"is not seen at all with none":    {doks.DeleteAtOnce, http.StatusNotFound},
		"is seen as deleted by default":   {"", http.StatusOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(o *doks.Options) { o.DeleteState = c.state })
			made := l.createRunning("demo", 1)
			path := clustersURL + "/" + made.ID
			l.Expect(l.do("DELETE", path, "").status).To(Equal(http.StatusNoContent))
			seen := l.do("GET", path, "")
			l.Expect(seen.status).To(Equal(c.seen))
			if c.seen == http.StatusOK {
				shown := doks.StateDeleted
				if c.state != "" {
					shown = c.state
				}
				l.Expect(seen.text).To(ContainSubstring(`"status":{"state":"` + string(shown) + `"}`))
				l.Expect(l.do("GET", path+"/kubeconfig", "").status).To(Equal(http.StatusNotFound))
				l.Expect(l.do("PUT", path, `{"name":"demo"}`).status).To(Equal(http.StatusUnprocessableEntity))
				l.Expect(l.do("DELETE", path, "").status).To(Equal(http.StatusNoContent), "a second request must be accepted")
			}
			l.Expect(l.cloud.Effective("delete cluster")).To(HaveLen(1), "a second request must change nothing")
			l.clock.Step(time.Second)
			l.Expect(l.do("GET", path, "").status).To(Equal(http.StatusNotFound))
			l.Expect(l.do("DELETE", path, "").status).To(Equal(http.StatusNotFound))
			l.Expect(l.cloud.Effective("delete cluster")).To(HaveLen(1))
		})
	}
}

func TestADeletionEndsProvisioning(t *testing.T) {
	l := newLab(t)
	made := l.create("demo", 1)
	l.Expect(l.do("DELETE", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNoContent))
	l.clock.Step(time.Hour)
	l.Expect(l.cloud.Clusters()).To(BeEmpty())
}

func TestWithoutTimesEverythingHappensImmediately(t *testing.T) {
	l := newLab(t, func(o *doks.Options) {
		*o = doks.Options{Tokens: o.Tokens, Clock: o.Clock}
	})
	made := l.create("demo", 50)
	l.Expect(l.get(made.ID).Status.State).To(Equal(godo.KubernetesClusterStatusRunning))
	l.Expect(states(l.get(made.ID))).To(HaveEach("running"))
	l.Expect(l.do("DELETE", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNoContent))
	l.Expect(l.do("GET", clustersURL+"/"+made.ID, "").status).To(Equal(http.StatusNotFound))
}

const (
	settingsOff = `cluster_autoscaler_configuration={"expanders":["priority"],"scale_down_utilization_threshold":0.5,"scale_down_unneeded_time":"1m0s"}
		control_plane_firewall={"enabled":false,"allowed_addresses":["192.0.2.1"]} sso={"enabled":false} routing_agent={"enabled":false}
		coredns_autoscaler={"enabled":false} maintenance_policy={"day":"monday","start_time":"01:00"}`
	settingsOn = `{"cluster_autoscaler_configuration":{"expanders":["random"],"scale_down_utilization_threshold":0.1,"scale_down_unneeded_time":"2m0s"},
		"control_plane_firewall":{"enabled":true,"allowed_addresses":["192.0.2.2"]}, "sso":{"enabled":true}, "routing_agent":{"enabled":true},
		"coredns_autoscaler":{"enabled":true}, "maintenance_policy":{"day":"sunday","start_time":"02:00"}}`
)

func TestRefusedRequestsForACluster(t *testing.T) {
	cases := map[string]struct {
		method, path, body string
		message            string
	}{
		"an update without a name":         {"PUT", "", `{}`, "name is required"},
		"a name that is taken":             {"PUT", "", `{"name":"other"}`, "a cluster with this name already exists"},
		"other settings, but no name":      {"PUT", "", settingsOn, "name is required"},
		"an invalid tag":                   {"PUT", "", `{"name":"demo","tags":["a b"]}`, "validation error: invalid tag"},
		"high availability switched off":   {"PUT", "", `{"name":"demo","ha":false}`, "cannot be disabled"},
		"an unknown day":                   {"PUT", "", `{"name":"demo","maintenance_policy":{"day":"x"}}`, "maintenance policy day"},
		"an upgrade to an unknown version": {"POST", "/upgrade", `{"version":"9.9"}`, "invalid version slug"},
		"an upgrade to a minor version":    {"POST", "/upgrade", `{"version":"1.37"}`, "invalid version slug"},
		"an upgrade to latest":             {"POST", "/upgrade", `{"version":"latest"}`, "invalid version slug"},
		"an upgrade to the same version":   {"POST", "/upgrade", `{"version":"1.36.5-do.1"}`, "cannot be upgraded to this version"},
		"an upgrade to an older version":   {"POST", "/upgrade", `{"version":"1.35.9-do.2"}`, "cannot be upgraded to this version"},
		"a negative expiry":                {"GET", "/credentials?expiry_seconds=-1", "", "expiry_seconds"},
		"an expiry that is not a number":   {"GET", "/kubeconfig?expiry_seconds=x", "", "expiry_seconds"},
		"messages since an invalid time":   {"GET", "/status_messages?since=x", "", "since is not a time"},
	}
	l := newLab(t)
	l.createRunning("other", 1)
	l.Expect(l.do("POST", clustersURL, body(append(strings.Fields(settingsOff), `version="1.36"`)...)).status).To(Equal(http.StatusCreated))
	l.clock.Step(time.Minute)
	before := l.cloud.Clusters()
	path := clustersURL + "/" + before[1].ID
	shown := l.do("GET", clustersURL, "").text
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := l.do(c.method, path+c.path, c.body)
			g.Expect(got.text).To(ContainSubstring(c.message))
			g.Expect(got.status).To(BeElementOf(http.StatusBadRequest, http.StatusUnprocessableEntity))
			g.Expect(l.do("GET", clustersURL, "").text).To(Equal(shown))
		})
	}
	newest := `{"version":"1.37.1-do.0"}`
	l.Expect(l.do("POST", path+"/upgrade", newest).status).To(Equal(http.StatusAccepted))
	l.Expect(l.do("POST", path+"/upgrade", newest).text).To(ContainSubstring("has to be running"))
}

func TestAnUpdateReplacesTagsAndKeepsWhatItDoesNotMention(t *testing.T) {
	l := newLab(t)
	l.do("POST", clustersURL, body(`tags=["a","b"]`, `sso={"enabled":true,"client_id":"x"}`))
	id := l.cloud.Clusters()[0].ID
	path := clustersURL + "/" + id
	kept := l.do("PUT", path, `{"name":"demo","ha":true,"sso":{"enabled":false}}`)
	l.Expect(kept.text).To(ContainSubstring(`"tags":["a","b","k8s","k8s:` + id + `"]`))
	l.Expect(kept.text).To(ContainSubstring(`"ha":true`))
	l.Expect(kept.text).To(ContainSubstring(`"enabled":false`))
	l.Expect(l.do("PUT", path, `{"name":"demo","tags":[]}`).text).To(ContainSubstring(`"tags":["k8s","k8s:` + id + `"]`))
	l.Expect(l.do("PUT", path, `{"name":"demo","tags":["c"]}`).text).To(ContainSubstring(`"tags":["c","k8s","k8s:` + id + `"]`))
}
