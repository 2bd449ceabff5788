package doks

import (
	"net/http"
	"slices"
	"time"
)

func (e *Emulator) listUpgrades(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	return reply{status: http.StatusOK, body: map[string][]Version{"available_upgrade_versions": upgradesFrom(found.Version)}}
}

// upgradeCluster starts an upgrade. The cluster keeps its old version until the upgrade ends.
func (e *Emulator) upgradeCluster(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	var wanted struct {
		Version string `json:"version"`
	}
	if refused, ok := x.decode(&wanted); !ok {
		return refused
	}
	isWanted := func(v Version) bool { return v.Slug == wanted.Version } // a full slug is needed: only a new cluster may name a minor version
	if !slices.ContainsFunc(versions(), isWanted) {
		return invalid("validation error: invalid version slug")
	}
	if !slices.ContainsFunc(upgradesFrom(found.Version), isWanted) {
		return invalid("validation error: the cluster cannot be upgraded to this version")
	}
	if found.State != StateRunning {
		return invalid("the cluster has to be running for an upgrade")
	}
	found.enter(StateUpgrading, "", x.now)
	found.Target = wanted.Version
	found.schedule(x.now.Add(e.options.UpgradeTime), StateRunning)
	return reply{status: http.StatusAccepted, effective: true}
}

// listMessages lists a cluster's status messages, all or since a given time.
func (e *Emulator) listMessages(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	var since time.Time
	if text := x.query.Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return badRequest("since is not a time in ISO 8601")
		}
	}
	messages := []StatusMessage{}
	for _, each := range found.Messages {
		if at := stamp(each.Timestamp); !at.Before(since) {
			messages = append(messages, StatusMessage{Message: each.Message, Timestamp: at})
		}
	}
	return reply{status: http.StatusOK, body: map[string][]StatusMessage{"messages": messages}}
}
