package doks

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// clusterName matches a DNS label.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// tagName matches a valid tag ("Create a New Tag" in DigitalOcean's API reference).
var tagName = regexp.MustCompile(`^[a-zA-Z0-9_:-]{1,255}$`)

const (
	longestPoolName = 55
	nameTaken       = "a cluster with this name already exists"
	needsName       = "validation error: name is required"
	badName         = "validation error: name must consist of lower-case letters, digits and dashes, and begin and end with a letter or digit"
)

// checkCreate returns what is wrong with a create request, or "".
func (e *Emulator) checkCreate(wanted createRequest) string {
	for _, check := range []func() string{
		func() string { return checkName(wanted.Name) },
		func() string { return checkPlace(wanted) },
		func() string { return checkPools(wanted.NodePools) },
		func() string { return checkTags(wanted.Tags) },
		wanted.check,
		// A failed cluster's name is still taken, and so is a deleted cluster's until its deletion ends.
		func() string { return e.checkFree(wanted.Name, nil) },
		func() string { return e.checkDroplets(reserve(wanted.NodePools)) },
	} {
		if message := check(); message != "" {
			return message
		}
	}
	return ""
}

func checkName(name string) string {
	if name == "" {
		return needsName
	}
	if !clusterName.MatchString(name) {
		return badName
	}
	return ""
}

func checkTags(tags []string) string {
	for _, tag := range tags {
		if !tagName.MatchString(tag) {
			return "validation error: invalid tag"
		}
	}
	return ""
}

func (e *Emulator) checkFree(name string, owner *cluster) string {
	if found := e.account.named(name); found != nil && found != owner {
		return nameTaken
	}
	return ""
}

// checkPlace checks the region, the version and the networks.
func checkPlace(wanted createRequest) string {
	if !offers(regions(), wanted.Region) {
		return "validation error: invalid region"
	}
	if _, found := resolveVersion(wanted.Version); !found {
		return "validation error: invalid version slug"
	}
	for _, id := range []string{wanted.VPC, wanted.WorkerSubnet} {
		if _, err := uuid.Parse(id); id != "" && err != nil {
			return "validation error: invalid VPC or subnet UUID"
		}
	}
	for _, subnet := range []string{wanted.ClusterSubnet, wanted.ServiceSubnet} {
		if _, err := netip.ParsePrefix(subnet); subnet != "" && err != nil {
			return "validation error: invalid subnet"
		}
	}
	return ""
}

// check returns what is wrong with the settings, or "".
func (s settings) check() string {
	if policy := s.MaintenancePolicy; policy != nil {
		days := []string{"", "any", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
		if !slices.Contains(days, policy.Day) {
			return "validation error: invalid maintenance policy day"
		}
		if _, err := time.Parse("15:04", policy.StartTime); policy.StartTime != "" && err != nil {
			return "validation error: invalid maintenance policy start time"
		}
	}
	if s.Autoscaler != nil {
		for _, each := range s.Autoscaler.Expanders {
			if !slices.Contains([]string{"random", "priority", "least_waste"}, each) {
				return "validation error: invalid cluster autoscaler expander"
			}
		}
	}
	return ""
}

// checkUpdate returns what is wrong with an update, or "".
func (e *Emulator) checkUpdate(found *cluster, wanted updateRequest) string {
	if message := checkName(wanted.Name); message != "" {
		return message
	}
	if found.HA && wanted.HA != nil && !*wanted.HA {
		return "validation error: a highly available control plane cannot be disabled"
	}
	if message := wanted.check(); message != "" {
		return message
	}
	if wanted.Tags != nil {
		if message := checkTags(*wanted.Tags); message != "" {
			return message
		}
	}
	return e.checkFree(wanted.Name, found)
}

// checkPools returns what is wrong with the pools in a request, or "".
func checkPools(pools []poolRequest) string {
	if len(pools) == 0 {
		return "validation error: at least one node pool is required"
	}
	names := map[string]bool{}
	for i, each := range pools {
		if message := each.check(); message != "" {
			return fmt.Sprintf("validation error: worker_node_pool_specs[%d].%s", i, message)
		}
		if message := each.checkScale(); message != "" {
			return message
		}
		if names[each.Name] {
			return fmt.Sprintf("validation error: worker_node_pool_specs[%d].pool names must be unique", i)
		}
		names[each.Name] = true
	}
	return ""
}

// check returns what is wrong with a pool, or "".
func (p poolRequest) check() string {
	if p.Name == "" {
		return "pool name is required"
	}
	if len(p.Name) > longestPoolName {
		return fmt.Sprintf("pool names cannot be greater than %d characters", longestPoolName)
	}
	if !clusterName.MatchString(p.Name) {
		return "invalid pool name"
	}
	if !offers(sizes(), p.Size) {
		return "invalid droplet size"
	}
	for _, taint := range p.Taints {
		if taint.Key == "" || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, taint.Effect) {
			return "invalid taint"
		}
	}
	if !p.AutoScale && p.Count < 1 {
		return "count must be greater than or equal to 1"
	}
	return ""
}

// checkScale checks the bounds of a pool's autoscaling, and that the count, unless it is 0, is within them.
func (p poolRequest) checkScale() string {
	if !p.AutoScale {
		return ""
	}
	if p.MinNodes < 1 {
		return "worker_node_pool_spec.min nodes must be greater than or equal to 1"
	}
	if p.MaxNodes < p.MinNodes {
		return "worker_node_pool_spec.max nodes must be greater than or equal to min nodes"
	}
	if p.Count != 0 && (p.Count < p.MinNodes || p.Count > p.MaxNodes) {
		return "worker_node_pool_spec.count must be between min nodes and max nodes"
	}
	return ""
}

// demand is how many more droplets a request may eventually need.
type demand struct {
	additional int
	autoScale  bool
}

func reserve(pools []poolRequest) demand {
	var total demand
	for _, each := range pools {
		if each.AutoScale {
			total.additional += each.MaxNodes
			total.autoScale = true
			continue
		}
		total.additional += each.Count
	}
	return total
}

func (e *Emulator) checkDroplets(wanted demand) string {
	limit := e.options.DropletLimit
	if limit == 0 || wanted.additional <= 0 || e.account.dropletsReserved()+wanted.additional <= limit {
		return ""
	}
	what := "desired nodes exceed limits"
	if wanted.autoScale {
		what = "autoscale desired max nodes exceed limits"
	}
	return fmt.Sprintf("%s, %d additional nodes but not enough available droplet limit", what, wanted.additional)
}
