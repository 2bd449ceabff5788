package doks

import (
	"net/http"
	"slices"
)

// deleteNode starts the removal of one node, and adds a new one if the request asks for a replacement. If the removal
// has already started, it changes nothing.
func (e *Emulator) deleteNode(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	from := found.pool(x.ids["pool"])
	if from == nil {
		return notFound()
	}
	i := slices.IndexFunc(from.Nodes, func(n *node) bool { return n.ID == x.ids["node"] })
	if i < 0 {
		return notFound()
	}
	drained := from.Nodes[i]
	if drained.State == nodeDraining || drained.State == nodeDeleting {
		return reply{status: http.StatusAccepted}
	}
	replaced := x.query.Get("replace") == "1"
	if !replaced && from.Count <= max(1, from.Min) {
		return invalid("a node pool cannot have fewer nodes: replace the node instead")
	}
	e.drain(drained, x.now, x.query.Get("skip_drain") == "1")
	if !replaced {
		from.Count--
	}
	e.resize(from, x.now, e.nodeDue(found, x.now))
	found.Updated = x.now
	return reply{status: http.StatusAccepted, effective: true}
}
