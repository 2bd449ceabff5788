// Package digitalocean implements [cloud.CloudProvider] for DigitalOcean's managed Kubernetes, with the library godo.
package digitalocean

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/godo"
	"golang.org/x/oauth2"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

const (
	// DefaultURL is the URL of DigitalOcean's API.
	DefaultURL = "https://api.digitalocean.com/"
	// requestTimeout limits each request. godo has no timeout of its own.
	requestTimeout = 30 * time.Second
	// pageSize is the largest page that the API allows.
	pageSize = 200
	// credentialsValidity is the requested lifetime of credentials; it is also the API's default.
	credentialsValidity = 7 * 24 * time.Hour

	clustersPath = "v2/kubernetes/clusters"
	accountPath  = "v2/account"
)

// Account manages the clusters that a token gives access to.
type Account struct{ client *godo.Client }

var _ cloud.CloudProvider = (*Account)(nil)

// New returns a token's account. Its requests use the transport, which accounts may share. The path of the base URL
// must be "/".
func New(token string, base *url.URL, transport http.RoundTripper) *Account {
	authenticated := &oauth2.Transport{
		Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}),
		Base:   transport,
	}
	// Unlike NewFromToken, NewClient retries nothing. If the response to a create request is lost, the operator must
	// look for the cluster before it retries, and the library doesn't do that.
	client := godo.NewClient(&http.Client{Transport: authenticated, Timeout: requestTimeout, CheckRedirect: followNone})
	client.BaseURL = base
	return &Account{client: client}
}

// followNone makes the client return a redirect as the response. Otherwise, oauth2 would send the token to any host
// that the redirect names.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// cluster is like godo's type, but decodes any state. godo v1.236.0 fails to decode a cluster whose state it does not
// know, such as "deleting", and any list that contains such a cluster.
type cluster struct {
	godo.KubernetesCluster
	Status *status `json:"status"`
}

type status struct {
	State   string `json:"state"`
	Message string `json:"message"`
}

// Identity implements cloud.CloudProvider. Tokens and clusters belong to a team, and a person may be in several teams.
// So Identity returns the team's ID, or the person's if there is none.
func (a *Account) Identity(ctx context.Context) (string, error) {
	var root struct {
		Account struct {
			UUID string         `json:"uuid"`
			Team *godo.TeamInfo `json:"team"`
		} `json:"account"`
	}
	err := a.send(ctx, http.MethodGet, accountPath, nil, &root)
	if answer, answered := errors.AsType[*godo.ErrorResponse](err); answered && answer.Response.StatusCode == http.StatusForbidden {
		message := strings.TrimSuffix(messageOf(answer), ".") + ": to show which account it belongs to, the token needs the scope account:read"
		return "", fmt.Errorf("get the account: %w", &cloud.Error{Problem: cloud.Unauthorized, Message: message})
	}
	if err != nil {
		return "", fmt.Errorf("get the account: %w", orUnavailable(translate(err)))
	}
	identity := root.Account.UUID
	if team := root.Account.Team; team != nil && team.UUID != "" {
		identity = team.UUID
	}
	if identity == "" {
		return "", fmt.Errorf("get the account: %w", &cloud.Error{Problem: cloud.Unavailable, Message: "the answer names no account"})
	}
	return identity, nil
}

// Find implements cloud.CloudProvider. The API can't filter by tag, so Find searches the list of all clusters.
//
//workshop:step 6.8e
func (a *Account) Find(ctx context.Context, owner cloud.Owner) (*cloud.Cluster, error) {
	for page := 1; ; page++ {
		var list struct {
			Clusters []*cluster  `json:"kubernetes_clusters"`
			Links    *godo.Links `json:"links"`
		}
		path := fmt.Sprintf("%s?page=%d&per_page=%d", clustersPath, page, pageSize)
		if err := a.do(ctx, http.MethodGet, path, nil, &list); err != nil {
			return nil, fmt.Errorf("list the clusters: %w", orUnavailable(err))
		}
		if list.Links == nil {
			return nil, fmt.Errorf("list the clusters: %w", &cloud.Error{Problem: cloud.Unavailable, Message: "the answer holds no list"})
		}
		for _, found := range list.Clusters {
			translated, err := found.translate()
			if err != nil {
				return nil, fmt.Errorf("list the clusters: %w", err)
			}
			if slices.Contains(translated.Owners, owner) {
				return translated, nil
			}
		}
		if list.Links.IsLastPage() {
			return nil, nil
		}
	}
}

// Get implements cloud.CloudProvider.
//
//workshop:step 6.8d
func (a *Account) Get(ctx context.Context, id string) (*cloud.Cluster, error) {
	if id == "" { // the API would return the list
		return nil, &cloud.Error{Problem: cloud.NotFound, Message: "no cluster has an empty ID"}
	}
	var root struct {
		Cluster *cluster `json:"kubernetes_cluster"`
	}
	if err := a.do(ctx, http.MethodGet, clustersPath+"/"+id, nil, &root); err != nil {
		return nil, fmt.Errorf("get cluster %s: %w", id, err)
	}
	if root.Cluster == nil || root.Cluster.ID != id {
		return nil, fmt.Errorf("get cluster %s: %w", id, unintelligible)
	}
	found, err := root.Cluster.translate()
	if err != nil {
		return nil, fmt.Errorf("get cluster %s: %w", id, err)
	}
	return found, nil
}

// Create implements cloud.CloudProvider.
//
//workshop:step 6.8c
func (a *Account) Create(ctx context.Context, owner cloud.Owner, spec cloud.Spec) (*cloud.Cluster, error) {
	request := &godo.KubernetesClusterCreateRequest{
		Name:        spec.Name,
		RegionSlug:  spec.Region,
		VersionSlug: spec.Version,
		Tags:        []string{owner.Tag(), originTag(spec.Origin)},
		HA:          new(false), // from 1.36 on, the default is true, which costs more and can't be switched off
	}
	for _, pool := range spec.Pools {
		request.NodePools = append(request.NodePools, newPool(pool))
	}
	var root struct {
		Cluster *cluster `json:"kubernetes_cluster"`
	}
	err := a.do(ctx, http.MethodPost, clustersPath, request, &root)
	if cloud.Is(err, cloud.Refused) && strings.Contains(err.Error(), "already exists") {
		return nil, fmt.Errorf("create cluster %s: %w", spec.Name, &cloud.Error{Problem: cloud.NameTaken, Message: "a cluster with this name already exists"})
	}
	if err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", spec.Name, orUnavailable(err))
	}
	if root.Cluster == nil || root.Cluster.ID == "" {
		return nil, fmt.Errorf("create cluster %s: %w", spec.Name, unintelligible)
	}
	return root.Cluster.translate()
}

const (
	originTagPrefix = "kluster:"
	// maxTagLength is the API's limit.
	maxTagLength = 255
)

// originTag returns the tag kluster:NAMESPACE:NAME, truncated to maxTagLength characters. Tags consist of letters,
// digits, colons, dashes and underscores ("Create a New Tag" in DigitalOcean's API reference). Names of namespaces and
// Klusters contain no underscores, so an underscore replaces each dot.
func originTag(origin string) string {
	tag := originTagPrefix + strings.NewReplacer("/", ":", ".", "_").Replace(origin)
	return tag[:min(len(tag), maxTagLength)]
}

// Upgrade implements cloud.CloudProvider. Every patch satisfies its minor version, and every version satisfies
// "latest": otherwise, a new release would upgrade a cluster whose spec has not changed. For a version earlier than
// the cluster's, Upgrade returns Refused without sending a request that the cloud would always refuse.
func (a *Account) Upgrade(ctx context.Context, cluster *cloud.Cluster, version string) (bool, error) {
	if version == "latest" || cluster.Version == version || strings.HasPrefix(cluster.Version, version+".") {
		return false, nil
	}
	if isLater(cluster.Version, version) {
		message := fmt.Sprintf("the cluster runs %s, and a cluster never goes back to %s: ask for the version that it runs, or a later one", cluster.Version, version)
		return false, &cloud.Error{Problem: cloud.Refused, Message: message}
	}
	slug, err := a.upgradeTo(ctx, cluster, version)
	if err != nil {
		return false, err
	}
	request := &godo.KubernetesClusterUpgradeRequest{VersionSlug: slug}
	if err := a.do(ctx, http.MethodPost, clustersPath+"/"+cluster.ID+"/upgrade", request, nil); err != nil {
		return false, fmt.Errorf("upgrade cluster %s to %s: %w", cluster.ID, slug, err)
	}
	return true, nil
}

// isLater reports whether the running version is later than the requested one. The suffix, as in 1.36.5-do.1, numbers
// DigitalOcean's releases of a patch.
func isLater(running, asked string) bool {
	runs, err := utilversion.ParseSemantic(running)
	if err != nil {
		return false
	}
	wanted, err := utilversion.ParseSemantic(asked)
	if err != nil { // a minor version other than the running one
		wanted, err = utilversion.ParseGeneric(asked)
	}
	return err == nil && wanted.LessThan(runs)
}

// upgradeTo returns the slug of the version. For a minor version, that is the newest patch that the cloud offers for
// this cluster, because only a create request may name a minor version. Source: DigitalOcean's OpenAPI document, POST
// upgrade.
func (a *Account) upgradeTo(ctx context.Context, cluster *cloud.Cluster, version string) (string, error) {
	if strings.Count(version, ".") != 1 {
		return version, nil
	}
	var offers struct {
		Versions []struct {
			Slug string `json:"slug"`
		} `json:"available_upgrade_versions"`
	}
	if err := a.do(ctx, http.MethodGet, clustersPath+"/"+cluster.ID+"/upgrades", nil, &offers); err != nil {
		return "", fmt.Errorf("list the upgrades of cluster %s: %w", cluster.ID, err)
	}
	var newest *utilversion.Version
	var slug string
	var others []string
	for _, offer := range offers.Versions {
		parsed, err := utilversion.ParseSemantic(offer.Slug)
		if err != nil || !strings.HasPrefix(offer.Slug, version+".") {
			others = append(others, offer.Slug)
			continue
		}
		if newest == nil || newest.LessThan(parsed) {
			newest, slug = parsed, offer.Slug
		}
	}
	if slug == "" {
		message := fmt.Sprintf("it offers no upgrade from %s to %s", cluster.Version, version)
		if len(others) > 0 {
			message += ", only to " + strings.Join(others, ", ")
		}
		return "", &cloud.Error{Problem: cloud.Refused, Message: message}
	}
	return slug, nil
}

// Delete implements cloud.CloudProvider.
//
//workshop:step 6.8c
func (a *Account) Delete(ctx context.Context, id string) error {
	if err := a.do(ctx, http.MethodDelete, clustersPath+"/"+id, nil, nil); err != nil {
		return fmt.Errorf("delete cluster %s: %w", id, err)
	}
	return nil
}

// translate converts the API's cluster. Each cluster has the tag k8s, so if the response shows no tags, the token isn't
// allowed to read them, and the owner is unknown.
func (c *cluster) translate() (*cloud.Cluster, error) {
	if len(c.Tags) == 0 {
		return nil, &cloud.Error{Problem: cloud.Unauthorized, Message: "the answer shows no tags: the token needs the scope tag:read"}
	}
	translated := &cloud.Cluster{ID: c.ID, Name: c.Name, Region: c.RegionSlug, Version: c.VersionSlug, Endpoint: c.Endpoint}
	if c.Status != nil {
		translated.State, translated.Message = cloud.State(c.Status.State), c.Status.Message
	}
	for _, tag := range c.Tags {
		if uid, found := strings.CutPrefix(tag, cloud.OwnerTagPrefix); found {
			translated.Owners = append(translated.Owners, cloud.Owner{UID: uid})
		}
		if origin, found := strings.CutPrefix(tag, originTagPrefix); found {
			translated.Origin = strings.NewReplacer(":", "/", "_", ".").Replace(origin)
		}
	}
	for _, pool := range c.NodePools {
		translated.Pools = append(translated.Pools, foundPool(pool))
	}
	return translated, nil
}
