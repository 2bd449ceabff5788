package doks

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Version is a Kubernetes version on offer.
type Version struct {
	Slug              string   `json:"slug"`
	KubernetesVersion string   `json:"kubernetes_version"`
	SupportedFeatures []string `json:"supported_features"`
}

// choice is a region or a machine size on offer. The API doesn't return prices.
type choice struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// versions returns the versions on offer, newest first. Two have the same minor version, to show that a request for
// just that minor version, such as 1.36, gets the newer one.
func versions() []Version {
	slugs := []string{"1.37.1-do.0", "1.36.5-do.1", "1.36.3-do.0", "1.35.9-do.2", "1.34.12-do.0"}
	offered := make([]Version, len(slugs))
	for i, slug := range slugs {
		upstream, _, _ := strings.Cut(slug, "-")
		offered[i] = Version{Slug: slug, KubernetesVersion: upstream, SupportedFeatures: []string{"cluster-autoscaler", "docr-integration", "ha-control-plane", "token-authentication"}}
	}
	return offered
}

func regions() []choice {
	return []choice{
		{"Amsterdam 3", "ams3"}, {"Bangalore 1", "blr1"}, {"Frankfurt 1", "fra1"}, {"London 1", "lon1"},
		{"New York 1", "nyc1"}, {"New York 3", "nyc3"}, {"San Francisco 3", "sfo3"}, {"Singapore 1", "sgp1"},
		{"Sydney 1", "syd1"}, {"Toronto 1", "tor1"},
	}
}

func sizes() []choice {
	slugs := []string{
		"s-1vcpu-2gb", "s-2vcpu-2gb", "s-2vcpu-4gb", "s-4vcpu-8gb", "s-8vcpu-16gb",
		"c-2", "c-4", "g-2vcpu-8gb", "g-4vcpu-16gb", "m-2vcpu-16gb",
	}
	offered := make([]choice, len(slugs))
	for i, slug := range slugs {
		offered[i] = choice{Name: slug, Slug: slug}
	}
	return offered
}

// offers reports whether a slug is among the choices.
func offers(choices []choice, slug string) bool {
	return slices.ContainsFunc(choices, func(c choice) bool { return c.Slug == slug })
}

// resolveVersion returns the slug that the version in a create request stands for. A slug stands for itself, a minor
// version for its newest patch, and latest for the newest version.
func resolveVersion(wanted string) (slug string, found bool) {
	for _, each := range versions() {
		if wanted == "latest" || wanted == each.Slug || wanted == minorOf(each.Slug) {
			return each.Slug, true
		}
	}
	return "", false
}

// minorOf returns, for example, 1.36 for 1.36.5-do.1.
func minorOf(slug string) string {
	parts := strings.SplitN(slug, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// minorNumber returns, for example, 36 for 1.36.5-do.1.
func minorNumber(slug string) int {
	_, minor, _ := strings.Cut(minorOf(slug), ".")
	number, _ := strconv.Atoi(minor) // every offered slug has one
	return number
}

// haDefaultMinor is the first minor version whose clusters are highly available by default.
const haDefaultMinor = 36

// upgradesFrom returns the versions to which a cluster can be upgraded: newer ones of its minor version and those of
// the next. If there are none, it returns nil, which becomes null in the reply, as in a reply of the real API.
func upgradesFrom(current string) []Version {
	var newer []Version
	for _, each := range versions() {
		if each.Slug == current {
			return newer
		}
		if minorNumber(each.Slug) <= minorNumber(current)+1 {
			newer = append(newer, each)
		}
	}
	return nil
}

func (e *Emulator) listOptions(*exchange) reply {
	return reply{status: http.StatusOK, body: map[string]any{"options": map[string]any{
		"regions": regions(), "sizes": sizes(), "versions": versions(),
	}}}
}
