package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/manager/managertest"
)

// kinds lists the kinds that the manager looks up.
var kinds = managertest.Kinds{
	corev1.SchemeGroupVersion:   {"configmaps": "ConfigMap", "services": "Service", "pods": "Pod"},
	appsv1.SchemeGroupVersion:   {"deployments": "Deployment"},
	webappv1.SchemeGroupVersion: {"guestbooks": "Guestbook"},
}

func TestMain(m *testing.M) { managertest.Main(m, main) }

// cluster starts an API server that serves the kinds, and returns the flag that names its kubeconfig.
func cluster(t *testing.T) string {
	return "--kubeconfig=" + managertest.Kubeconfig(t, (&managertest.APIServer{Kinds: kinds}).Start(t))
}

func TestRunRefuses(t *testing.T) {
	occupied := managertest.OccupiedAddress(t)
	ignorant := &managertest.APIServer{Kinds: kinds, Unknown: webappv1.SchemeGroupVersion.Group}
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":     {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an impossible value": {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"no cluster":          {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"an address for probes that is in use": {
			args: []string{cluster(t), "--health-probe-bind-address=" + occupied},
			want: "--health-probe-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"a cluster that can't be reached":        {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, "127.0.0.1:1")}, want: "connection refused"},
		"a cluster that doesn't know Guestbooks": {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, ignorant.Start(t))}, want: "the cluster does not know Guestbooks: install the CRD with `make install`"},
		"no namespace for leader election":       {args: []string{"--health-probe-bind-address=0", "--leader-elect", cluster(t)}, want: "unable to find leader election namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			managertest.Isolate(t)
			ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
			defer cancel()
			err := run(ctx, test.args, io.Discard)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error must be a single line")
		})
	}
}

func TestRunPrintsHelp(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--help"}, &output)).To(Succeed())
	g.Expect(output.String()).To(ContainSubstring("how many Guestbooks to reconcile at the same time"))
}

func TestRunPrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	managertest.Isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &output)).To(Succeed(), "--version needs no cluster")
	g.Expect(output.String()).To(Equal("guestbook-controller unknown (revision unknown)\n"), "go test sets no version")
}

func TestProcessAsksForItsOwnLeaseAndPods(t *testing.T) {
	g := NewWithT(t)
	managertest.Isolate(t)
	server := &managertest.APIServer{Kinds: kinds}
	managertest.StartProcess(t, "--health-probe-bind-address=0", "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)),
		"--leader-elect", "--leader-election-namespace=shop")
	g.Eventually(server.Requests).WithTimeout(managertest.Timeout).Should(And(
		ContainElement(HavePrefix("GET /apis/coordination.k8s.io/v1/namespaces/shop/leases/guestbook.my.domain?")),
		ContainElement(And(HavePrefix("GET /api/v1/pods?"), ContainSubstring("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dguestbook-controller"))),
	), "see LeaderElectionID and ByObject in main.go")
}

func TestProcessEndsWhenToldTo(t *testing.T) {
	tests := map[string]struct {
		silent bool
		// readiness is the HTTP status of /readyz.
		readiness int
	}{
		"while it is running":                              {readiness: http.StatusOK},
		"while it waits for a cluster that doesn't answer": {silent: true, readiness: http.StatusInternalServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			managertest.Isolate(t)
			server := &managertest.APIServer{Kinds: kinds, Silent: test.silent}
			probes := managertest.FreeAddress(t)
			process := managertest.StartProcess(t, "--health-probe-bind-address="+probes, "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)))
			g.Eventually(process.Err).WithTimeout(managertest.Timeout).Should(gbytes.Say("Starting the manager"))
			g.Eventually(managertest.Status).WithArguments("http://" + probes + "/healthz").WithTimeout(managertest.Timeout).Should(Equal(http.StatusOK))
			g.Eventually(managertest.Status).WithArguments("http://" + probes + "/readyz").WithTimeout(managertest.Timeout).Should(Equal(test.readiness))

			process.Signal(syscall.SIGTERM)
			g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(0))
			g.Expect(string(process.Err.Contents())).To(ContainSubstring("Stopped"))
		})
	}
}

func TestProcessFailsInOneLine(t *testing.T) {
	g := NewWithT(t)
	managertest.Isolate(t)
	process := managertest.StartProcess(t, "--colour=red")
	g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal("guestbook-controller: flag provided but not defined: -colour: --help lists the flags\n"))
	g.Expect(process.Out.Contents()).To(BeEmpty())

	occupied := managertest.OccupiedAddress(t)
	process = managertest.StartProcess(t, "--health-probe-bind-address=0", "--metrics-bind-address="+occupied, cluster(t))
	g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal(
		"guestbook-controller: --metrics-bind-address: listen tcp "+occupied+": bind: address already in use; choose another address, or 0 for none\n"),
		"nothing may be logged before the error, see CheckAddresses in manager/options.go")
}
