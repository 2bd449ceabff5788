package main

import (
	"bytes"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCommandRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                    {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"a value that is not a number":       {args: []string{"--workers=many"}, want: `invalid value "many" for flag -workers: parse error: --help lists the flags`},
		"no workers":                         {args: []string{"--workers=0"}, want: "--workers=0: at least 1 is needed"},
		"a negative resync":                  {args: []string{"--resync-period=-1s"}, want: "--resync-period=-1s: give 0 for never"},
		"a drain timeout of zero":            {args: []string{"--drain-timeout=0s"}, want: "--drain-timeout=0s: give a positive duration"},
		"a rate without a burst":             {args: []string{"--kube-api-qps=5"}, want: "--kube-api-qps=5 --kube-api-burst=-1: give a positive rate and a burst of at least 1"},
		"a Lease that ends too early":        {args: []string{"--leader-elect", "--leader-election-lease-duration=5s"}, want: "--leader-election-renew-deadline=10s must be shorter than"},
		"no cluster":                         {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a missing kubeconfig":               {args: []string{"--kubeconfig=missing"}, want: "read the kubeconfig: stat missing: no such file"},
		"a malformed kubeconfig":             {args: []string{"--kubeconfig=" + nonsense(t)}, want: "read the kubeconfig: error loading config file"},
		"an address where no server listens": {args: []string{"--kubeconfig=" + kubeconfigFor(t, unusedAddress(t))}, want: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", "")
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := command(t.Context(), test.args, io.Discard)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error must be one line that says what to do")
		})
	}
}

func TestCommandPrintsHelpAndVersion(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	g.Expect(command(t.Context(), []string{"--help"}, &output)).To(Succeed())
	for _, name := range []string{"kubeconfig", "leader-elect", "metrics-bind-address", "health-probe-bind-address", "v value"} {
		g.Expect(output.String()).To(ContainSubstring("  -" + name))
	}
	output.Reset()
	g.Expect(command(t.Context(), []string{"--version"}, &output)).To(Succeed())
	g.Expect(output.String()).To(Equal("foo-controller unknown (revision unknown)\n"), "go test sets neither the version nor the revision")
}

func TestParseFlags(t *testing.T) {
	g := NewWithT(t)
	parsed, err := parseFlags(nil, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.options).To(Equal(defaultOptions()))
	g.Expect(parsed.commandLine.QPS).To(BeNumerically("<", 0), "the client must have no limit of its own")

	parsed, err = parseFlags([]string{"--namespace=shop", "--workers", "7", "--leader-elect", "-v=2"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.namespace).To(Equal("shop"))
	g.Expect(parsed.workers).To(Equal(7))
	g.Expect(parsed.LeaderElection.Enabled).To(BeTrue())

	_, err = parseFlags([]string{"-h"}, io.Discard)
	g.Expect(err).To(MatchError(flag.ErrHelp))
}

func nonsense(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "nonsense")
	NewWithT(t).Expect(os.WriteFile(file, []byte("not: [a kubeconfig"), 0o600)).To(Succeed())
	return file
}

func kubeconfigFor(t *testing.T, address string) string {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: 'http://" + address + "'}}]\n"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	return file
}

// unusedAddress returns an address that nothing listens on.
func unusedAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
