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
	"time"

	. "github.com/onsi/gomega"
)

func TestCommandRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                         {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"no worker":                               {args: []string{"--workers=0"}, want: "--workers=0: at least 1 is needed"},
		"a negative resync":                       {args: []string{"--resync-period=-1s"}, want: "--resync-period=-1s: give 0 for never"},
		"no time to drain":                        {args: []string{"--drain-timeout=0s"}, want: "--drain-timeout=0s: give a positive duration"},
		"no time between polls":                   {args: []string{"--poll-interval=0s"}, want: "--poll-interval, --observe-interval, --retry-interval, --consistency-window: give positive durations"},
		"no time between observations":            {args: []string{"--observe-interval=-1s"}, want: "give positive durations"},
		"no time between retries":                 {args: []string{"--retry-interval=0s"}, want: "give positive durations"},
		"no consistency window":                   {args: []string{"--consistency-window=0s"}, want: "give positive durations"},
		"a cloud without a scheme":                {args: []string{"--do-api-url=api.example.com"}, want: "--do-api-url=api.example.com: give a URL such as https://api.digitalocean.com/"},
		"a cloud without a host":                  {args: []string{"--do-api-url=https://"}, want: "give a URL such as"},
		"a cloud over another scheme":             {args: []string{"--do-api-url=ftp://api.example.com"}, want: "give a URL such as"},
		"a cloud with an invalid URL":             {args: []string{"--do-api-url=https://[::1"}, want: "give a URL such as"},
		"a cloud with a path":                     {args: []string{"--do-api-url=https://api.example.com/v2"}, want: "--do-api-url=https://api.example.com/v2: give scheme and host only"},
		"a cloud with a query":                    {args: []string{"--do-api-url=https://api.example.com/?page=1"}, want: "give scheme and host only"},
		"a cloud with a user":                     {args: []string{"--do-api-url=https://somebody@api.example.com/"}, want: "give scheme and host only"},
		"a cloud over plain HTTP":                 {args: []string{"--do-api-url=http://api.example.com"}, want: "the token would travel in the clear"},
		"a cloud at a private address":            {args: []string{"--do-api-url=http://10.0.0.1:8080"}, want: "the token would travel in the clear"},
		"a rate of zero":                          {args: []string{"--do-api-qps=0"}, want: "--do-api-qps=0 --do-api-burst=20: give a positive rate"},
		"no burst for the cloud":                  {args: []string{"--do-api-burst=0"}, want: "--do-api-qps=1 --do-api-burst=0: give a positive rate"},
		"a rate without a burst":                  {args: []string{"--kube-api-qps=5"}, want: "--kube-api-qps=5 --kube-api-burst=-1: give a positive rate and a burst of at least 1"},
		"a Lease shorter than the renew deadline": {args: []string{"--leader-elect", "--leader-election-lease-duration=5s"}, want: "--leader-election-renew-deadline=10s must be shorter than"},
		"no cluster":                              {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a kubeconfig that is missing":            {args: []string{"--kubeconfig=missing"}, want: "read the kubeconfig: stat missing: no such file"},
		"a cluster that is not there":             {args: []string{"--kubeconfig=" + kubeconfigFor(t, unusedAddress(t))}, want: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", "")
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := command(t.Context(), test.args, io.Discard)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error must be one line")
		})
	}
}

func TestCloudURLIsAccepted(t *testing.T) {
	for _, address := range []string{
		"https://api.digitalocean.com/", "https://api.example.com", "https://api.example.com:8443/",
		"http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8080",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			parsed, err := parseFlags([]string{"--do-api-url=" + address}, io.Discard)
			g.Expect(err).NotTo(HaveOccurred())
			base, err := parsed.cloud.base()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(base.Path).To(Equal("/"), "requests have paths relative to it, see base in cloud.go")
		})
	}
}

func TestCommandPrints(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	g.Expect(command(t.Context(), []string{"--help"}, &output)).To(Succeed())
	for _, name := range []string{"kubeconfig", "leader-elect", "metrics-bind-address", "do-api-url", "consistency-window", "v value"} {
		g.Expect(output.String()).To(ContainSubstring("  -" + name))
	}
	output.Reset()
	g.Expect(command(t.Context(), []string{"--version"}, &output)).To(Succeed())
	g.Expect(output.String()).To(Equal("kluster-operator unknown (revision unknown)\n"), "go test sets no version")
}

func TestParseFlags(t *testing.T) {
	g := NewWithT(t)
	parsed, err := parseFlags(nil, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.options).To(Equal(defaultOptions()))
	g.Expect(parsed.firstRetry).To(BeNumerically(">=", time.Second), "a cloud that has just failed usually fails again a few milliseconds later")
	g.Expect(parsed.commandLine.QPS).To(BeNumerically("<", 0), "the client must have no limit of its own")

	parsed, err = parseFlags([]string{"--namespace=shop", "--workers", "7", "--leader-elect", "-v=2", "--do-api-qps=1.5"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.namespace).To(Equal("shop"))
	g.Expect(parsed.workers).To(Equal(7))
	g.Expect(parsed.LeaderElection.Enabled).To(BeTrue())
	g.Expect(parsed.cloud.qps).To(BeEquivalentTo(1.5))

	_, err = parseFlags([]string{"-h"}, io.Discard)
	g.Expect(err).To(MatchError(flag.ErrHelp))
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
