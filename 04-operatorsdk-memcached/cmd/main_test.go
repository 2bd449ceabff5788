package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/manager"
)

// asProcess is set in the environment of this test program when it is to be the manager itself.
const asProcess = "MEMCACHED_TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRunRefuses(t *testing.T) {
	occupied := listen(t)
	reachable := "--kubeconfig=" + kubeconfigFor(t, apiServer{}.start(t))
	tests := map[string]struct {
		args        []string
		environment map[string]string
		want        string
	}{
		"an unknown flag":               {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an argument":                   {args: []string{"start"}, want: `unexpected argument "start": --help lists the flags`},
		"a number that is none":         {args: []string{"--max-concurrent-reconciles=many"}, want: `invalid value "many" for flag -max-concurrent-reconciles: parse error: --help lists the flags`},
		"no worker":                     {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"no resync":                     {args: []string{"--resync-period=0s"}, want: "--resync-period=0s: give a positive duration"},
		"a name that no namespace has":  {args: []string{"--namespaces=shop,Bank"}, want: `invalid value "shop,Bank" for flag -namespaces: "Bank" is no namespace: `},
		"an empty list of namespaces":   {args: []string{"--namespaces="}, want: `"" is no namespace: `},
		"a certificate that is missing": {args: []string{"--metrics-cert-path=missing"}, want: "--metrics-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"a certificate without TLS":     {args: []string{"--metrics-secure=false", "--metrics-cert-path=certs"}, want: "--metrics-cert-path is for TLS: leave --metrics-secure=false out"},
		"a variable with a name that no namespace has": {
			environment: map[string]string{"WATCH_NAMESPACE": "shop,Bank"},
			want:        `WATCH_NAMESPACE=shop,Bank: "Bank" is no namespace: `,
		},
		"a variable with a space in an image": {
			environment: map[string]string{"MEMCACHED_IMAGE": "memcached 1"},
			want:        "MEMCACHED_IMAGE=memcached 1: the name of an image has no spaces",
		},
		"no cluster":                   {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a kubeconfig that is missing": {args: []string{"--kubeconfig=missing"}, want: "read the kubeconfig: stat missing: no such file or directory"},
		"a KUBECONFIG that is missing": {environment: map[string]string{"KUBECONFIG": "missing"}, want: "read the kubeconfig: "},
		"a kubeconfig of nonsense":     {args: []string{"--kubeconfig=" + nonsense(t)}, want: "read the kubeconfig: error loading config file"},
		"an address for probes that somebody has": {
			args: []string{reachable, "--health-probe-bind-address=" + occupied},
			want: "--health-probe-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"a cluster that is not there":    {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + kubeconfigFor(t, "127.0.0.1:1")}, want: "connection refused"},
		"a cluster without Memcacheds":   {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + kubeconfigFor(t, apiServer{unknown: cachev1alpha1.SchemeGroupVersion.Group}.start(t))}, want: "the cluster does not know Memcacheds: install them with `make install`"},
		"no namespace to elect a leader": {args: []string{"--health-probe-bind-address=0", "--leader-elect", reachable}, want: "unable to find leader election namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolate(t)
			t.Setenv("KUBECONFIG", "")
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := run(ctx, test.args, io.Discard)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error is one line that says what to do")
		})
	}
}

func TestRunPrintsHelp(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	isolate(t)
	g.Expect(run(t.Context(), []string{"--help"}, &output)).To(Succeed())
	for _, name := range []string{"kubeconfig", "namespaces", "leader-elect", "metrics-bind-address", "health-probe-bind-address", "zap-log-level"} {
		g.Expect(output.String()).To(ContainSubstring("  -" + name))
	}
}

func TestRunPrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &output)).To(Succeed(), "it needs no cluster")
	g.Expect(output.String()).To(Equal("memcached-operator unknown (revision unknown)\n"), "go test stamps nothing")
}

func TestParseFlags(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	_, options, err := parseFlags(nil, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options).To(Equal(manager.Default()))

	_, options, err = parseFlags([]string{"--namespaces=shop,bank", "--zap-log-level=debug", "--max-concurrent-reconciles", "7"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Namespaces).To(Equal([]string{"shop", "bank"}))
	g.Expect(options.MaxConcurrentReconciles).To(Equal(7))

	t.Setenv("WATCH_NAMESPACE", "town")
	t.Setenv("MEMCACHED_IMAGE", "registry.test/memcached:1")
	_, options, err = parseFlags(nil, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Namespaces).To(Equal([]string{"town"}))
	g.Expect(options.Image).To(Equal("registry.test/memcached:1"))
	_, options, err = parseFlags([]string{"--namespaces=shop"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Namespaces).To(Equal([]string{"shop"}), "who gives a flag means it")
}

func TestProcessEndsWhenToldTo(t *testing.T) {
	tests := map[string]struct {
		server apiServer
		// readiness is the status of /readyz.
		readiness int
	}{
		"while it works": {readiness: http.StatusOK},
		"while it waits for a cluster that is silent": {server: apiServer{silent: true}, readiness: http.StatusInternalServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probes := freeAddress(t)
			process := startProcess(t, "--health-probe-bind-address="+probes, "--kubeconfig="+kubeconfigFor(t, test.server.start(t)))
			g.Eventually(process.Err).WithTimeout(patience).Should(gbytes.Say("Starting the manager"))
			g.Eventually(statusOf).WithArguments("http://" + probes + "/healthz").WithTimeout(patience).Should(Equal(http.StatusOK))
			g.Eventually(statusOf).WithArguments("http://" + probes + "/readyz").WithTimeout(patience).Should(Equal(test.readiness))

			process.Signal(syscall.SIGTERM)
			g.Eventually(process).WithTimeout(patience).Should(gexec.Exit(0))
			g.Expect(string(process.Err.Contents())).To(ContainSubstring("Stopped"))
		})
	}
}

func TestProcessFailsInOneLine(t *testing.T) {
	g := NewWithT(t)
	process := startProcess(t, "--colour=red")
	g.Eventually(process).WithTimeout(patience).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal("memcached-operator: flag provided but not defined: -colour: --help lists the flags\n"))
	g.Expect(process.Out.Contents()).To(BeEmpty())

	occupied := listen(t)
	process = startProcess(t, "--health-probe-bind-address=0", "--metrics-bind-address="+occupied, "--kubeconfig="+kubeconfigFor(t, apiServer{}.start(t)))
	g.Eventually(process).WithTimeout(patience).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal(
		"memcached-operator: --metrics-bind-address: listen tcp "+occupied+": bind: address already in use; choose another address, or 0 for none\n"),
		"no log comes before, see CheckAddresses in options.go")
}

// startProcess runs the manager in a process of its own, until the test ends.
func startProcess(t *testing.T, args ...string) *gexec.Session {
	isolate(t)
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asProcess+"=yes", "KUBECONFIG=")
	process, err := gexec.Start(command, io.Discard, io.Discard)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Eventually(process.Kill()).WithTimeout(patience).Should(gexec.Exit()) })
	return process
}

func statusOf(url string) (int, error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}
