package digitalocean_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud/cloudtest"
	"example.com/operator-workshop/06-kluster-digitalocean/internal/digitalocean"
	"example.com/operator-workshop/doks"
)

// maxTag is the length of the longest tag that the API accepts.
const maxTag = 255

const (
	token         = "dop-v1-full"
	readOnlyToken = "dop-v1-reader"
	narrowToken   = "dop-v1-narrow"
	wrongToken    = "dop-v1-wrong"
)

func TestContract(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.World {
		api, base := serve(t, slowly)
		_, neighbours := serve(t, func(options *doks.Options) { options.Team = "0b5c0a52-0000-4000-8000-0000000000aa" })
		spec := newSpec("shop")
		refused := newSpec("refused")
		refused.Pools[0].Size = "s-none"
		return cloudtest.World{
			Account:   digitalocean.New(token, base, http.DefaultTransport),
			ReadOnly:  digitalocean.New(readOnlyToken, base, http.DefaultTransport),
			Narrow:    digitalocean.New(narrowToken, base, http.DefaultTransport),
			Stranger:  digitalocean.New(wrongToken, base, http.DefaultTransport),
			Neighbour: digitalocean.New(token, neighbours, http.DefaultTransport),
			Tokens:    []string{token, readOnlyToken, narrowToken, wrongToken},
			Spec:      spec,
			OtherSize: "s-4vcpu-8gb",
			Minor:     "1.36",
			Newer:     "1.37.1-do.0",
			Refused:   refused,
			Fail: func(problem cloud.Problem) {
				kinds := map[cloud.Problem]doks.FaultKind{cloud.Busy: doks.FaultTooMany, cloud.Unavailable: doks.FaultUnavailable}
				NewWithT(t).Expect(api.AddFault(doks.Fault{Kind: kinds[problem]})).To(Succeed())
			},
			Lag: func() func() {
				for kind, path := range map[doks.FaultKind]string{doks.FaultLaggingList: "/v2/kubernetes/clusters", doks.FaultLaggingGet: "/v2/kubernetes/clusters/*"} {
					fault := doks.Fault{Method: http.MethodGet, Path: path, Kind: kind, Delay: doks.Duration(time.Hour), Count: doks.Always}
					NewWithT(t).Expect(api.AddFault(fault)).To(Succeed())
				}
				return api.ClearFaults
			},
			Retag: func(id string, owners ...cloud.Owner) {
				var tags []string
				for _, owner := range owners {
					tags = append(tags, owner.Tag())
				}
				NewWithT(t).Expect(api.SetTags(id, tags)).To(Succeed())
			},
		}
	})
}

// slowly makes the creation and the deletion of a cluster take long enough for a test to observe them.
func slowly(options *doks.Options) {
	options.ProvisionTime, options.DeleteTime = 30*time.Millisecond, 60*time.Millisecond
}

func TestCreate(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	made, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made).NotTo(BeNil(), "see Create in digitalocean.go")
	g.Expect(api.Clusters()).To(ConsistOf(And(HaveField("ID", made.ID), HaveField("Name", "shop"), HaveField("Tags", ContainElements("kluster-uid:owner", "kluster:front:shop")))))
	g.Expect(made.Pools).To(ConsistOf(And(HaveField("Name", "web"), HaveField("Size", "s-2vcpu-4gb"), HaveField("Count", 1))))

	_, err = account.Create(t.Context(), cloud.Owner{UID: "another"}, newSpec("shop"))
	g.Expect(cloud.Is(err, cloud.NameTaken)).To(BeTrue(), "the name is taken; found: %v, see Create in digitalocean.go", err)
	g.Expect(api.Clusters()).To(ConsistOf(HaveField("HA", BeFalse())), "a highly available control plane costs more, and is the default from 1.36 on, see Create in digitalocean.go")
	wrong := newSpec("wrong")
	wrong.Version = "0.1"
	_, err = account.Create(t.Context(), cloud.Owner{UID: "owner"}, wrong)
	g.Expect(cloud.Is(err, cloud.Refused)).To(BeTrue(), "there is no such version; found: %v", err)
	_, err = answering(t, `{"kubernetes_cluster":null}`).Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "the answer holds no cluster; found: %v, see Create in digitalocean.go", err)
}

// The emulator refuses any tag that the API would refuse.
func TestTheTagShowsTheOrigin(t *testing.T) {
	long := strings.Repeat("x", 63) + "/" + strings.Repeat("y", 242)
	tests := map[string]struct{ origin, want string }{
		"a namespace and a name":  {origin: "shop/front", want: "shop/front"},
		"a name with dots":        {origin: "shop/front.eu-1.example", want: "shop/front.eu-1.example"},
		"the longest valid names": {origin: long, want: long[:maxTag-len("kluster:")]},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, base := serve(t)
			account := digitalocean.New(token, base, http.DefaultTransport)
			spec := newSpec("shop")
			spec.Origin = test.origin
			made, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, spec)
			g.Expect(err).NotTo(HaveOccurred(), "see originTag in digitalocean.go")
			g.Expect(made).To(HaveValue(And(HaveField("Origin", test.want), HaveField("Owners", ConsistOf(cloud.Owner{UID: "owner"})))))
		})
	}
}

func TestCreateNeedsTheAPI(t *testing.T) {
	g := NewWithT(t)
	account := serving(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusNotFound)
	})
	_, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "there is no such API; found: %v, see orUnavailable in request.go", err)
}

func TestDelete(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	made, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made).NotTo(BeNil(), "see Create in digitalocean.go")
	g.Expect(account.Delete(t.Context(), made.ID)).To(Succeed())
	g.Expect(api.Effective("delete cluster")).To(HaveLen(1), "see Delete in digitalocean.go")
	err = account.Delete(t.Context(), "0b5c0a52-0000-4000-8000-000000000003")
	g.Expect(cloud.Is(err, cloud.NotFound)).To(BeTrue(), "there is no such cluster; found: %v, see Delete in digitalocean.go", err)
}

func TestGet(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	made, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(api.SetState(made.ID, doks.StateDeleting, "")).To(Succeed())
	found, err := account.Get(t.Context(), made.ID)
	g.Expect(err).NotTo(HaveOccurred(), "the library's own type does not know this state, see Get in digitalocean.go")
	g.Expect(found).To(HaveValue(And(HaveField("ID", made.ID), HaveField("Name", "shop"), HaveField("State", cloud.StateDeleting))), "see Get in digitalocean.go")

	for _, body := range []string{`{}`, `{"kubernetes_cluster":null}`, `{"kubernetes_cluster":{"id":"another"}}`} {
		_, err = answering(t, body).Get(t.Context(), made.ID)
		g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "%s does not hold the requested cluster; found: %v, see Get in digitalocean.go", body, err)
	}
}

func TestStateThatTheLibraryDoesNotKnow(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	made, err := account.Create(t.Context(), cloud.Owner{UID: "first"}, newSpec("first"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made).NotTo(BeNil(), "see Create in digitalocean.go")
	other, err := account.Create(t.Context(), cloud.Owner{UID: "other"}, newSpec("other"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(api.SetState(made.ID, doks.StateDeleting, "")).To(Succeed())

	found, err := account.Get(t.Context(), made.ID)
	g.Expect(err).NotTo(HaveOccurred(), "an operator that took this error for \"gone\" would leave a cluster behind")
	g.Expect(found).To(HaveValue(HaveField("State", cloud.StateDeleting)))
	found, err = account.Find(t.Context(), cloud.Owner{UID: "first"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveValue(HaveField("State", cloud.StateDeleting)))
	found, err = account.Find(t.Context(), cloud.Owner{UID: "other"})
	g.Expect(err).NotTo(HaveOccurred(), "one cluster must not hide the others")
	g.Expect(found).To(HaveValue(HaveField("ID", other.ID)))
}

func TestFindReadsEveryPage(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	const count = 201 // a page holds up to 200
	for i := range count {
		_, err := account.Create(t.Context(), cloud.Owner{UID: fmt.Sprint("owner-", i)}, newSpec(fmt.Sprint("shop-", i)))
		g.Expect(err).NotTo(HaveOccurred())
	}
	for _, i := range []int{0, count - 2, count - 1} {
		found, err := account.Find(t.Context(), cloud.Owner{UID: fmt.Sprint("owner-", i)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveValue(HaveField("Name", fmt.Sprint("shop-", i))), "see Find in digitalocean.go")
	}
	api.ClearJournal()
	found, err := account.Find(t.Context(), cloud.Owner{UID: "owner"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeNil(), "the UID must match as a whole, not only its beginning")
	g.Expect(api.Journal()).To(HaveLen(2))
}

// If the response is lost, Create's error wraps no *cloud.Error; if the cloud returns an error, Create's error wraps
// one. Except after a 429, the request may have taken effect, so the library must not retry: only the operator can do
// that safely.
func TestLostAnswers(t *testing.T) {
	tests := map[string]struct {
		fault doks.Fault
		made  int
		// answered means that a complete response arrives.
		answered bool
	}{
		"dropped before the effect":       {fault: doks.Fault{Kind: doks.FaultDrop}},
		"dropped after the effect":        {fault: doks.Fault{Kind: doks.FaultDrop, After: true}, made: 1},
		"cut off":                         {fault: doks.Fault{Kind: doks.FaultCut}, made: 1},
		"500 after the effect":            {fault: doks.Fault{Kind: doks.FaultServerError, After: true}, made: 1, answered: true},
		"a proxy's page after the effect": {fault: doks.Fault{Kind: doks.FaultBadGateway, After: true}, made: 1, answered: true},
		"too many requests":               {fault: doks.Fault{Kind: doks.FaultTooMany}, answered: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api, base := serve(t)
			g.Expect(api.AddFault(test.fault)).To(Succeed())
			account := digitalocean.New(token, base, http.DefaultTransport)
			_, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).NotTo(ContainSubstring(token))
			g.Expect(cloud.Is(err, cloud.Unavailable) || cloud.Is(err, cloud.Busy)).To(Equal(test.answered), err.Error())
			g.Expect(api.Journal()).To(HaveLen(1), "see New in digitalocean.go")
			g.Expect(api.Clusters()).To(HaveLen(test.made))
			found, err := account.Find(t.Context(), cloud.Owner{UID: "owner"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found != nil).To(Equal(test.made == 1), "the create request itself contains the tag")
		})
	}
}

func TestPageOfAProxy(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	g.Expect(api.AddFault(doks.Fault{Kind: doks.FaultBadGateway})).To(Succeed())
	_, err := digitalocean.New(token, base, http.DefaultTransport).Get(t.Context(), "1")
	g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v", err)
	g.Expect(err).To(MatchError(And(ContainSubstring("502 Bad Gateway"), Not(ContainSubstring("<")))), "a page is not a message, see messageOf in request.go")
}

func TestNotFoundIsAProofOnlyFromTheAPI(t *testing.T) {
	const page, answer = `<html>not here</html>`, `{"id":"not_found","message":"The resource you requested could not be found."}`
	tests := map[string]struct {
		kind, body string
		gone       bool
	}{
		"a proxy's page":   {kind: "text/html; charset=utf-8", body: page},
		"nothing":          {kind: "text/plain"},
		"the API's answer": {kind: "application/json; charset=utf-8", body: answer, gone: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			account := serving(t, func(writer http.ResponseWriter, _ *http.Request) {
				writer.Header().Set("Content-Type", test.kind)
				writer.WriteHeader(http.StatusNotFound)
				_, _ = writer.Write([]byte(test.body))
			})
			wanted := cloud.Unavailable
			if test.gone {
				wanted = cloud.NotFound
			}
			_, err := account.Get(t.Context(), "1")
			g.Expect(cloud.Is(err, wanted)).To(BeTrue(), "expected Get to return %q, found: %v, see problemOf in request.go", wanted, err)
			err = account.Delete(t.Context(), "1")
			g.Expect(cloud.Is(err, wanted)).To(BeTrue(), "expected Delete to return %q, found: %v", wanted, err)

			_, err = account.Find(t.Context(), cloud.Owner{UID: "owner"})
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "a missing list proves nothing, found: %v", err)
			_, err = account.Identity(t.Context())
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Identity to return Unavailable, found: %v", err)
			_, err = account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Create to return Unavailable, found: %v", err)
		})
	}
}

func TestFindNeedsToSeeTags(t *testing.T) {
	g := NewWithT(t)
	account := answering(t, `{"kubernetes_clusters":[{"id":"1","tags":[]}],"links":{},"meta":{"total":1}}`)
	_, err := account.Find(t.Context(), cloud.Owner{UID: "owner"})
	g.Expect(cloud.Is(err, cloud.Unauthorized)).To(BeTrue(), "expected Unauthorized, found: %v", err)
	g.Expect(err).To(MatchError(ContainSubstring("the token needs the scope tag:read")))
}

func TestUpgradeChoosesAVersionOrRefuses(t *testing.T) {
	tests := map[string]struct{ version, offered, want, refusal string }{
		"a minor version means the newest patch offered": {version: "1.37", offered: `[{"slug":"1.37.9-do.0"},{"slug":"1.37.10-do.0"},{"slug":"1.37.10-do.1"},{"slug":"1.36.9-do.1"}]`, want: "1.37.10-do.1"},
		"a slug is used unchanged":                       {version: "1.37.9-do.0", offered: `[]`, want: "1.37.9-do.0"},
		"only another patch is offered":                  {version: "1.37", offered: `[{"slug":"1.36.9-do.1"}]`, refusal: "it offers no upgrade from 1.36.5-do.1 to 1.37, only to 1.36.9-do.1"},
		"1.3 does not mean 1.37":                         {version: "1.3", offered: `[{"slug":"1.37.1-do.0"}]`, refusal: "never goes back to 1.3: "},
		"nothing is offered":                             {version: "1.37", offered: `null`, refusal: "it offers no upgrade from 1.36.5-do.1 to 1.37"},
		"the cluster runs a later patch":                 {version: "1.36.4-do.0", offered: `[]`, refusal: "the cluster runs 1.36.5-do.1, and a cluster never goes back to 1.36.4-do.0: ask for the version that it runs, or a later one"},
		"the cluster runs a later release":               {version: "1.36.5-do.0", offered: `[]`, refusal: "never goes back to 1.36.5-do.0"},
		"the cluster runs a later minor version":         {version: "1.35", offered: `[{"slug":"1.37.1-do.0"}]`, refusal: "never goes back to 1.35"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asked := ""
			account := serving(t, func(writer http.ResponseWriter, request *http.Request) {
				writer.Header().Set("Content-Type", "application/json")
				if request.Method == http.MethodPost {
					var body struct{ Version string }
					g.Expect(json.NewDecoder(request.Body).Decode(&body)).To(Succeed())
					asked = body.Version
					writer.WriteHeader(http.StatusAccepted)
					return
				}
				_, _ = fmt.Fprintf(writer, `{"available_upgrade_versions":%s}`, test.offered)
			})
			changed, err := account.Upgrade(t.Context(), &cloud.Cluster{ID: "1", Version: "1.36.5-do.1"}, test.version)
			g.Expect(asked).To(Equal(test.want), "see upgradeTo in digitalocean.go")
			g.Expect(changed).To(Equal(test.want != ""))
			if test.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(cloud.Is(err, cloud.Refused)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.refusal)))
		})
	}
}

func TestAPoolIsNotGivenOtherMachines(t *testing.T) {
	g := NewWithT(t)
	api, base := serve(t)
	account := digitalocean.New(token, base, http.DefaultTransport)
	made, err := account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
	g.Expect(err).NotTo(HaveOccurred())
	wanted := newSpec("shop").Pools
	wanted[0].Size = "s-4vcpu-8gb"
	api.ClearJournal()
	_, err = account.UpdatePools(t.Context(), made, wanted)
	g.Expect(cloud.Is(err, cloud.Refused)).To(BeTrue(), "expected Refused, found: %v", err)
	g.Expect(err).To(MatchError(ContainSubstring("s-2vcpu-4gb")))
	g.Expect(api.Journal()).To(BeEmpty())
}

func TestEmptyAnswers(t *testing.T) {
	for _, body := range []string{`{}`, `{"kubernetes_cluster":null}`, `{"kubernetes_cluster":{"id":""}}`, `{"kubernetes_cluster":{"id":"another"}}`} {
		t.Run(body, func(t *testing.T) {
			g := NewWithT(t)
			account := answering(t, body)
			_, err := account.Get(t.Context(), "wanted")
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v", err)
			_, err = account.Find(t.Context(), cloud.Owner{UID: "owner"})
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "a response without a list proves nothing, so the error must be Unavailable; found: %v", err)
			_, err = account.Kubeconfig(t.Context(), &cloud.Cluster{ID: "wanted"})
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v", err)
			if body == `{"kubernetes_cluster":{"id":"another"}}` {
				return // this is a valid response to a create request
			}
			_, err = account.Create(t.Context(), cloud.Owner{UID: "owner"}, newSpec("shop"))
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v", err)
		})
	}
}

func TestIdentityOfATeamOrAPerson(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"a person in a team":               {body: `{"account":{"uuid":"person","team":{"uuid":"team","name":"shop"}}}`, want: "team"},
		"a person without a team":          {body: `{"account":{"uuid":"person"}}`, want: "person"},
		"a person in a team without an ID": {body: `{"account":{"uuid":"person","team":{}}}`, want: "person"},
		"an account without an ID":         {body: `{"account":{}}`},
		"no account":                       {body: `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			identity, err := answering(t, test.body).Identity(t.Context())
			g.Expect(identity).To(Equal(test.want), "see Identity in digitalocean.go")
			g.Expect(cloud.Is(err, cloud.Unavailable)).To(Equal(test.want == ""), "an answer without an ID must cause the error Unavailable, and one with an ID no error, found: %v", err)
		})
	}
}

// answering returns the account of a cloud that responds to every request with the same body.
func answering(t *testing.T, body string) *digitalocean.Account {
	t.Helper()
	return serving(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write([]byte(body)) // if this fails, the client's request fails, too
	})
}

// serving returns the account of a cloud that the handler implements.
func serving(t *testing.T, handle http.HandlerFunc) *digitalocean.Account {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return digitalocean.New(token, base, http.DefaultTransport)
}

// newSpec returns a spec that the emulator accepts.
func newSpec(name string) cloud.Spec {
	return cloud.Spec{Name: name, Origin: "front/" + name, Region: "fra1", Version: "1.36.5-do.1", Pools: []cloud.Pool{{Name: "web", Size: "s-2vcpu-4gb", Count: 1}}}
}

// serve starts an emulator. Its clusters are ready immediately, unless a function changes the options.
func serve(t *testing.T, change ...func(*doks.Options)) (*doks.Emulator, *url.URL) {
	t.Helper()
	g := NewWithT(t)
	options := doks.Options{Tokens: []string{token}, ReadOnlyTokens: []string{readOnlyToken}, ClusterTokens: []string{narrowToken}}
	for _, each := range change {
		each(&options)
	}
	api, err := doks.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/")
	g.Expect(err).NotTo(HaveOccurred())
	return api, base
}
