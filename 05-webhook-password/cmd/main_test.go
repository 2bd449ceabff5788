package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/manager/managertest"
)

// kinds are the kinds that the manager looks up.
var kinds = managertest.Kinds{
	corev1.SchemeGroupVersion:   {"secrets": "Secret"},
	secretv1.SchemeGroupVersion: {"passwords": "Password"},
}

func TestMain(m *testing.M) { managertest.Main(m, main) }

func isolate(t *testing.T) { managertest.Isolate(t, "ENABLE_WEBHOOKS", "POD_NAMESPACE") }

// cluster starts an API server that knows the kinds, and returns the flag that selects it.
func cluster(t *testing.T) string {
	return "--kubeconfig=" + managertest.Kubeconfig(t, (&managertest.APIServer{Kinds: kinds}).Start(t))
}

// certificates returns a folder that contains a key and a self-signed certificate for localhost.
func certificates(t *testing.T) string {
	g := NewWithT(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
	return folder
}

func TestRunRefuses(t *testing.T) {
	occupied, free := managertest.OccupiedAddress(t), "--webhook-bind-address="+managertest.FreeAddress(t)
	ignorant := &managertest.APIServer{Kinds: kinds, Unknown: secretv1.SchemeGroupVersion.Group}
	tests := map[string]struct {
		args        []string
		environment map[string]string
		want        string
	}{
		"an unknown flag":                    {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"a log that would contain passwords": {args: []string{"--zap-log-level=8"}, want: "--zap-log-level: must be at most 7: at higher levels, client-go logs the bodies of requests, and so passwords"},
		"webhooks that are neither on nor off": {
			environment: map[string]string{"ENABLE_WEBHOOKS": "maybe"},
			want:        "ENABLE_WEBHOOKS=maybe: must be true or false",
		},
		"certificates of an unknown kind":    {args: []string{"--webhook-certs=borrowed"}, want: "--webhook-certs=borrowed: choose one of local, files, rotated"},
		"local webhooks on all addresses":    {args: []string{"--webhook-bind-address=:9443"}, want: "--webhook-bind-address=:9443: local webhooks need a loopback address, such as 127.0.0.1:9443"},
		"webhooks without a certificate":     {args: []string{"--webhook-certs=files", "--webhook-cert-path=missing"}, want: "--webhook-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"rotated certificates outside a pod": {args: []string{"--webhook-certs=rotated", "--webhook-cert-path=certs"}, want: "--webhook-certs=rotated: set POD_NAMESPACE to the namespace of the Secret webhook-server-cert"},
		"no cluster":                         {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a probe address that is in use": {
			args: []string{cluster(t), free, "--health-probe-bind-address=" + occupied},
			want: "--health-probe-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"a cluster that can't be reached":       {args: []string{free, "--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, "127.0.0.1:1")}, want: "connection refused"},
		"a cluster that doesn't know Passwords": {args: []string{free, "--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, ignorant.Start(t))}, want: "the cluster does not know Passwords: install the CRD with `make install`"},
		"no namespace for leader election":      {args: []string{free, "--health-probe-bind-address=0", "--leader-elect", cluster(t)}, want: "unable to find leader election namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolate(t)
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
			defer cancel()
			err := run(ctx, test.args, io.Discard)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "the error should be one line that says what to do")
		})
	}
}

func TestRunPrintsHelp(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	isolate(t)
	g.Expect(run(t.Context(), []string{"--help"}, &output)).To(Succeed())
	g.Expect(output.String()).To(And(
		ContainSubstring("how many Passwords to reconcile at the same time"), ContainSubstring("  -webhook-certs"), ContainSubstring("  -webhook-bind-address")))
}

func TestRunPrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &output)).To(Succeed(), "--version must work without a cluster")
	g.Expect(output.String()).To(Equal("password-operator unknown (revision unknown)\n"), "go test sets no version")
}

func TestProcessAsksForItsOwnLeaseAndSecrets(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	t.Setenv("ENABLE_WEBHOOKS", "false")
	server := &managertest.APIServer{Kinds: kinds}
	managertest.StartProcess(t, "--health-probe-bind-address=0", "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)),
		"--leader-elect", "--leader-election-namespace=shop",
		"--webhook-certs=nonsense") // ignored, because there are no webhooks
	g.Eventually(server.Requests).WithTimeout(managertest.Timeout).Should(And(
		ContainElement(HavePrefix("GET /apis/coordination.k8s.io/v1/namespaces/shop/leases/password.example.com?")),
		ContainElement(HavePrefix("GET /api/v1/secrets?")),
	), "see LeaderElectionID and ByObject in main.go")
	g.Expect(server.Requests()).NotTo(ContainElement(And(HavePrefix("GET /api/v1/secrets?"), Not(ContainSubstring("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dpassword-operator")))),
		"other people's Secrets must stay out of the cache, see Cache in main.go")
}

func TestProcessEndsWhenToldTo(t *testing.T) {
	tests := map[string]struct {
		silent   bool
		webhooks bool
		// readiness is the HTTP status of /readyz.
		readiness int
	}{
		"while it reconciles":                     {readiness: http.StatusOK},
		"while it reconciles and serves webhooks": {webhooks: true, readiness: http.StatusOK},
		"while it waits for a silent API server":  {silent: true, readiness: http.StatusInternalServerError},
		"while it waits, but serves webhooks":     {silent: true, webhooks: true, readiness: http.StatusOK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probes, hooks := managertest.FreeAddress(t), managertest.FreeAddress(t)
			isolate(t)
			t.Setenv("ENABLE_WEBHOOKS", strconv.FormatBool(test.webhooks))
			server := &managertest.APIServer{Kinds: kinds, Silent: test.silent}
			process := managertest.StartProcess(t, "--health-probe-bind-address="+probes, "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)),
				"--webhook-certs=files", "--webhook-cert-path="+certificates(t), "--webhook-bind-address="+hooks)
			g.Eventually(process.Err).WithTimeout(managertest.Timeout).Should(gbytes.Say("Starting the manager"))
			g.Eventually(managertest.Status).WithArguments("http://" + probes + "/healthz").WithTimeout(managertest.Timeout).Should(Equal(http.StatusOK))
			g.Eventually(managertest.Status).WithArguments("http://" + probes + "/readyz").WithTimeout(managertest.Timeout).Should(Equal(test.readiness))
			g.Expect(protocolOf(hooks)).To(Equal(map[bool]string{true: "http/1.1"}[test.webhooks]), "a ready process must serve webhooks, unless they are switched off")

			process.Signal(syscall.SIGTERM)
			g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(0))
			g.Expect(string(process.Err.Contents())).To(ContainSubstring("Stopped"))
		})
	}
}

func TestProcessFailsInOneLine(t *testing.T) {
	occupied := managertest.OccupiedAddress(t)
	cluster := cluster(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag": {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"a metrics address that is in use": {
			args: []string{cluster, "--metrics-bind-address=" + occupied},
			want: "--metrics-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"an address of local webhooks that is in use": {
			args: []string{cluster, "--webhook-bind-address=" + occupied},
			want: "--webhook-bind-address=" + occupied + ": another process uses it: end that one, or choose another port",
		},
		"an address of webhooks that is in use": {
			args: []string{cluster, "--webhook-certs=files", "--webhook-cert-path=" + certificates(t), "--webhook-bind-address=" + occupied},
			want: "--webhook-bind-address=" + occupied + ": another process uses it: end that one, or choose another port",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolate(t)
			process := managertest.StartProcess(t, append(test.args, "--health-probe-bind-address=0")...)
			g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(1))
			lines := strings.Split(strings.TrimSpace(string(process.Err.Contents())), "\n") // the log comes first
			g.Expect(lines[len(lines)-1]).To(Equal("password-operator: " + test.want))
			g.Expect(process.Out.Contents()).To(BeEmpty())
		})
	}
}

// protocolOf returns the protocol that the TLS server at the address chooses, "h2" or "http/1.1", or "" if no TLS
// server answers there.
func protocolOf(address string) string {
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		return ""
	}
	defer connection.Close()
	return connection.ConnectionState().NegotiatedProtocol
}
