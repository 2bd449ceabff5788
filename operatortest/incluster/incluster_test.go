package incluster

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSelectorForKubectl(t *testing.T) {
	g := NewWithT(t)
	g.Expect(selector(`{"app.kubernetes.io/name":"foo","control-plane":"manager"}`)).To(Equal("app.kubernetes.io/name=foo,control-plane=manager"))
}

func TestForwardedAddress(t *testing.T) {
	cases := map[string]struct{ printed, want string }{
		"an IPv4 address":                 {"Forwarding from 127.0.0.1:40123 -> 8443\n", "127.0.0.1:40123"},
		"an IPv6 address comes first":     {"Forwarding from [::1]:40123 -> 8443\nForwarding from 127.0.0.1:40123 -> 8443\n", "127.0.0.1:40123"},
		"kubectl ends without an address": {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			address, err := forwardedAddress(strings.NewReader(c.printed))
			g.Expect(address).To(Equal(c.want))
			g.Expect(err == nil).To(Equal(c.want != ""), "there must be an error if, and only if, there is no address: %v", err)
		})
	}
}

func TestDistinctCountsNodesOnce(t *testing.T) {
	g := NewWithT(t)
	g.Expect(distinct(map[string]string{"a": "node-1", "b": "node-1", "c": "node-2"})).To(HaveLen(2))
}
