package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/manager"
)

// asProcess is set in the environment of this test program when it is to be the manager itself.
const asProcess = "PASSWORD_TEST_AS_MANAGER"

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
		"an unknown flag":                 {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an argument":                     {args: []string{"start"}, want: `unexpected argument "start": --help lists the flags`},
		"a number that is none":           {args: []string{"--max-concurrent-reconciles=many"}, want: `invalid value "many" for flag -max-concurrent-reconciles: parse error: --help lists the flags`},
		"no worker":                       {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"no resync":                       {args: []string{"--resync-period=0s"}, want: "--resync-period=0s: give a positive duration"},
		"a name that no namespace has":    {args: []string{"--namespaces=shop,Bank"}, want: `invalid value "shop,Bank" for flag -namespaces: "Bank" is no namespace: `},
		"an empty list of namespaces":     {args: []string{"--namespaces="}, want: `"" is no namespace: `},
		"a certificate that is missing":   {args: []string{"--metrics-cert-path=missing"}, want: "--metrics-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"a certificate without TLS":       {args: []string{"--metrics-secure=false", "--metrics-cert-path=certs"}, want: "--metrics-cert-path is for TLS: leave --metrics-secure=false out"},
		"a log that would hold passwords": {args: []string{"--zap-log-level=8"}, want: "--zap-log-level: at most 7: above that client-go logs the bodies of requests, and with them passwords"},
		"webhooks that are neither on nor off": {
			environment: map[string]string{"ENABLE_WEBHOOKS": "maybe"},
			want:        "ENABLE_WEBHOOKS=maybe: give true or false",
		},
		"certificates from nowhere":      {args: []string{"--webhook-certs=borrowed"}, want: "--webhook-certs=borrowed: choose one of local, files, rotated"},
		"local webhooks for everybody":   {args: []string{"--webhook-bind-address=:9443"}, want: "--webhook-bind-address=:9443: local webhooks need a loopback address, such as 127.0.0.1:9443"},
		"webhooks without a certificate": {args: []string{"--webhook-certs=files", "--webhook-cert-path=missing"}, want: "--webhook-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"certificates of no pod":         {args: []string{"--webhook-certs=rotated", "--webhook-cert-path=certs", reachable}, want: "--webhook-certs=rotated: set POD_NAMESPACE to the namespace of the Secret webhook-server-cert"},
		"no cluster":                     {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a kubeconfig that is missing":   {args: []string{"--kubeconfig=missing"}, want: "read the kubeconfig: stat missing: no such file or directory"},
		"a KUBECONFIG that is missing":   {environment: map[string]string{"KUBECONFIG": "missing"}, want: "read the kubeconfig: "},
		"a kubeconfig of nonsense":       {args: []string{"--kubeconfig=" + nonsense(t)}, want: "read the kubeconfig: error loading config file"},
		"an address for probes that somebody has": {
			args: []string{reachable, "--health-probe-bind-address=" + occupied},
			want: "listen tcp " + occupied + ": bind: address already in use",
		},
		"a cluster that is not there":    {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + kubeconfigFor(t, "127.0.0.1:1")}, want: "connection refused"},
		"a cluster without Passwords":    {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + kubeconfigFor(t, apiServer{unknown: secretv1.SchemeGroupVersion.Group}.start(t))}, want: "the cluster does not know Passwords: install them with `make install`"},
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
	for _, name := range []string{"kubeconfig", "namespaces", "leader-elect", "metrics-bind-address", "health-probe-bind-address", "webhook-certs", "webhook-bind-address", "zap-log-level"} {
		g.Expect(output.String()).To(ContainSubstring("  -" + name))
	}
}

func TestRunPrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &output)).To(Succeed(), "it needs no cluster")
	g.Expect(output.String()).To(Equal("password-operator unknown (revision unknown)\n"), "go test stamps nothing")
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

	t.Setenv("ENABLE_WEBHOOKS", "false")
	_, options, err = parseFlags([]string{"--webhook-certs=nonsense"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred(), "nobody needs certificates of no webhooks")
	g.Expect(options.Webhooks.Enabled).To(BeFalse())
}

func TestProcessEndsWhenToldTo(t *testing.T) {
	tests := map[string]struct {
		server apiServer
		// webhooks tells whether there are any.
		webhooks bool
		// readiness is the status of /readyz.
		readiness int
	}{
		"while it works":                              {readiness: http.StatusOK},
		"while it works and serves webhooks":          {webhooks: true, readiness: http.StatusOK},
		"while it waits for a cluster that is silent": {server: apiServer{silent: true}, readiness: http.StatusInternalServerError},
		"while it serves webhooks, and waits":         {server: apiServer{silent: true}, webhooks: true, readiness: http.StatusOK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probes, hooks := freeAddress(t), freeAddress(t)
			environment := "ENABLE_WEBHOOKS=" + strconv.FormatBool(test.webhooks)
			process := startProcess(t, environment, "--health-probe-bind-address="+probes, "--kubeconfig="+kubeconfigFor(t, test.server.start(t)),
				"--webhook-certs=files", "--webhook-cert-path="+certificates(t), "--webhook-bind-address="+hooks)
			g.Eventually(process.Err).WithTimeout(patience).Should(gbytes.Say("Starting the manager"))
			g.Eventually(statusOf).WithArguments("http://" + probes + "/healthz").WithTimeout(patience).Should(Equal(http.StatusOK))
			g.Eventually(statusOf).WithArguments("http://" + probes + "/readyz").WithTimeout(patience).Should(Equal(test.readiness))
			g.Expect(protocolOf(hooks)).To(Equal(map[bool]string{true: "http/1.1"}[test.webhooks]), "who is ready serves, and what is switched off is off")

			process.Signal(syscall.SIGTERM)
			g.Eventually(process).WithTimeout(patience).Should(gexec.Exit(0))
			g.Expect(string(process.Err.Contents())).To(ContainSubstring("Stopped"))
		})
	}
}

func TestProcessFailsInOneLine(t *testing.T) {
	occupied := listen(t)
	cluster := "--kubeconfig=" + kubeconfigFor(t, apiServer{}.start(t))
	tests := map[string]struct {
		environment string
		args        []string
		want        string
	}{
		"an unknown flag": {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an address for metrics that somebody has": {
			environment: "ENABLE_WEBHOOKS=false",
			args:        []string{cluster, "--metrics-bind-address=" + occupied},
			want:        "run the manager: failed to start metrics server: failed to create listener: listen tcp " + occupied + ": bind: address already in use",
		},
		"an address for local webhooks that somebody has": {
			args: []string{cluster, "--webhook-bind-address=" + occupied},
			want: "run the manager: --webhook-bind-address=" + occupied + ": another process uses it: end that one, or choose another port",
		},
		"an address for webhooks that somebody has": {
			args: []string{cluster, "--webhook-certs=files", "--webhook-cert-path=" + certificates(t), "--webhook-bind-address=" + occupied},
			want: "run the manager: --webhook-bind-address=" + occupied + ": another process uses it: end that one, or choose another port",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			process := startProcess(t, test.environment, append(test.args, "--health-probe-bind-address=0")...)
			g.Eventually(process).WithTimeout(patience).Should(gexec.Exit(1))
			lines := strings.Split(strings.TrimSpace(string(process.Err.Contents())), "\n") // the log comes before
			g.Expect(lines[len(lines)-1]).To(Equal("password-operator: " + test.want))
			g.Expect(process.Out.Contents()).To(BeEmpty())
		})
	}
}

// startProcess runs the manager in a process of its own, until the test ends.
func startProcess(t *testing.T, environment string, args ...string) *gexec.Session {
	isolate(t)
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asProcess+"=yes", "KUBECONFIG=", environment)
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

// protocolOf is what a server that speaks TLS chooses of HTTP/2 and HTTP/1.1; "" if nobody listens.
func protocolOf(address string) string {
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		return ""
	}
	defer connection.Close()
	return connection.ConnectionState().NegotiatedProtocol
}
