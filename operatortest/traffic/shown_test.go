package traffic

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// known returns an event about the object with the UID "known".
func known(kind apiwatch.EventType, version int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"known","resourceVersion":"%d"}}}`, kind, version))
}

func TestShown(t *testing.T) {
	g, server, tap := NewWithT(t), newStream(t), New()
	seen := watching(t, tap, server.config)
	shown := func() []Version { return tap.Shown(ofConfigMaps, "known") }
	g.Expect(shown()).To(BeEmpty(), "a watch that has not shown the object must be left out: it may never show it")

	server.events <- known("ADDED", 1)
	g.Expect(next(g, seen)).To(Equal("ADDED a 1"))
	g.Expect(shown()).To(ConsistOf(Version{ResourceVersion: "1"}))

	release := tap.Hold(ofConfigMaps)
	server.events <- known("DELETED", 2)
	g.Eventually(tap.Kept).WithArguments(ofConfigMaps).WithTimeout(waitTimeout).Should(Equal(1))
	g.Expect(shown()).To(ConsistOf(Version{ResourceVersion: "1"}), "an event that is held back must not count as shown")

	release(Late)
	g.Expect(next(g, seen)).To(Equal("DELETED a 2"))
	g.Expect(shown()).To(ConsistOf(Version{ResourceVersion: "2", Deleted: true}))
	g.Expect(tap.Kept(ofConfigMaps)).To(BeZero())
}

func TestKeptDoesNotCountBookmarks(t *testing.T) {
	g, server, tap := NewWithT(t), newStream(t), New()
	tap.Hold(ofConfigMaps)
	watching(t, tap, server.config)
	server.events <- event("BOOKMARK", "", 1)
	server.events <- event("ADDED", "a", 2)
	g.Eventually(tap.Kept).WithArguments(ofConfigMaps).WithTimeout(waitTimeout).Should(Equal(1))
}
