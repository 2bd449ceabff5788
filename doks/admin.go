package doks

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// adminPath is the path of the control API. It is outside the API that operators use.
const adminPath = "/emulator"

// stateRequest is the body of a request to change a cluster's state.
type stateRequest struct {
	State   State  `json:"state"`
	Message string `json:"message"`
}

// resourceRequest is the body of a request to add resources. It contains their names.
type resourceRequest struct {
	LoadBalancers   []string `json:"load_balancers"`
	Volumes         []string `json:"volumes"`
	VolumeSnapshots []string `json:"volume_snapshots"`
}

// tagRequest is the body of a request to replace a cluster's tags.
type tagRequest struct {
	Tags []string `json:"tags"`
}

// serveAdmin serves the control API. Its requests are not in the journal, and no rate limit or fault applies to them.
func (e *Emulator) serveAdmin(writer http.ResponseWriter, request *http.Request) {
	if refused, ok := checkLocal(request); !ok {
		refused.send(writer, false)
		return
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, largestBody))
	if err != nil {
		badRequest("the body could not be read").send(writer, false)
		return
	}
	e.steer(request, body).send(writer, false)
}

// checkLocal rejects requests by which a web page in a browser on this machine could read or change something. With DNS
// rebinding, a page could read the replies, but its requests still name the page's own host. Without it, the browser
// hides the replies from the page, and sends JSON, a PUT or a DELETE only after a preflight request, which fails.
func checkLocal(request *http.Request) (reply, bool) {
	host := request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host != "localhost" && (err != nil || !address.IsLoopback()) {
		return fail(http.StatusForbidden, "the host must be localhost or a loopback address"), false
	}
	kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if request.Method == http.MethodPost && (err != nil || kind != "application/json") {
		return badRequest("send the header Content-Type: application/json"), false
	}
	return reply{}, true
}

func (e *Emulator) steer(request *http.Request, body []byte) reply {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(request.URL.Path, adminPath), "/"), "/")
	call := request.Method + " " + parts[0]
	if len(parts) == 2 && call == "DELETE clusters" {
		return e.done(e.Remove(parts[1]))
	}
	if len(parts) == 3 {
		return e.steerCluster(call+" "+parts[2], parts[1], body)
	}
	if len(parts) != 1 {
		return notFound()
	}
	switch call {
	case "GET journal":
		return reply{status: http.StatusOK, body: map[string]any{"journal": e.Journal()}}
	case "DELETE journal":
		e.ClearJournal()
		return reply{status: http.StatusNoContent}
	case "GET faults":
		return reply{status: http.StatusOK, body: map[string]any{"faults": e.Faults()}}
	case "DELETE faults":
		e.ClearFaults()
		return reply{status: http.StatusNoContent}
	case "POST faults":
		return e.steerFault(body)
	case "GET clusters":
		return reply{status: http.StatusOK, body: map[string]any{"kubernetes_clusters": e.Clusters()}}
	case "GET leftovers":
		return reply{status: http.StatusOK, body: e.Leftovers()}
	}
	return notFound()
}

func (e *Emulator) steerFault(body []byte) reply {
	var fault Fault
	if err := json.Unmarshal(body, &fault); err != nil {
		return badRequest(err.Error())
	}
	if err := e.AddFault(fault); err != nil {
		return invalid(err.Error())
	}
	return reply{status: http.StatusCreated, body: fault}
}

func (e *Emulator) steerCluster(call, id string, body []byte) reply {
	switch call {
	case "POST clusters state":
		var wanted stateRequest
		if err := json.Unmarshal(body, &wanted); err != nil {
			return badRequest(err.Error())
		}
		return e.done(e.SetState(id, wanted.State, wanted.Message))
	case "POST clusters resources":
		var wanted resourceRequest
		if err := json.Unmarshal(body, &wanted); err != nil {
			return badRequest(err.Error())
		}
		return e.done(e.AddResources(id, wanted.LoadBalancers, wanted.Volumes, wanted.VolumeSnapshots))
	case "PUT clusters tags":
		var wanted tagRequest
		if err := json.Unmarshal(body, &wanted); err != nil {
			return badRequest(err.Error())
		}
		return e.done(e.SetTags(id, wanted.Tags))
	}
	return notFound()
}

func (*Emulator) done(err error) reply {
	if err != nil {
		return invalid(err.Error())
	}
	return reply{status: http.StatusNoContent}
}

// change edits a cluster and saves the result while the clusters are locked.
func (e *Emulator) change(id string, edit func(*cluster) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(e.options.Clock.Now())
	found := e.account.find(id)
	if found == nil {
		return fmt.Errorf("there is no cluster %q", id)
	}
	if err := edit(found); err != nil {
		return fmt.Errorf("change cluster %s: %w", found.Name, err)
	}
	e.nudge()
	return e.save()
}

// SetState puts a cluster into a state, which then doesn't change on its own.
func (e *Emulator) SetState(id string, state State, message string) error {
	states := []State{StateProvisioning, StateRunning, StateUpgrading, StateDegraded, StateError, StateDeleted, StateDeleting}
	if !slices.Contains(states, state) {
		return fmt.Errorf("there is no state %q", state)
	}
	return e.change(id, func(c *cluster) error {
		serves := state == StateRunning || state == StateDegraded || state == StateUpgrading
		if serves && e.planes != nil && e.addresses[c.ID] == "" {
			return fmt.Errorf("its control plane is not ready, so it can't be %s", state)
		}
		now := e.options.Clock.Now()
		c.enter(state, message, now)
		if serves {
			e.start(c, now)
		}
		return nil
	})
}

// AddResources adds resources with these names to a cluster, as if its users had made them.
func (e *Emulator) AddResources(id string, loadBalancers, volumes, volumeSnapshots []string) error {
	return e.change(id, func(c *cluster) error {
		c.Resources = c.Resources.with(Resources{
			LoadBalancers: named(loadBalancers), Volumes: named(volumes), VolumeSnapshots: named(volumeSnapshots),
		})
		return nil
	})
}

// SetTags replaces the tags that users gave a cluster, as the cluster's page in DigitalOcean's control panel does.
func (e *Emulator) SetTags(id string, tags []string) error {
	return e.change(id, func(c *cluster) error {
		c.Tags = unique(tags)
		return nil
	})
}

// Remove removes a cluster immediately, whatever its state.
func (e *Emulator) Remove(id string) error {
	return e.change(id, func(c *cluster) error {
		e.remove(c)
		return nil
	})
}
