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
	policyv1 "k8s.io/api/policy/v1"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/manager"
	"example.com/operator-workshop/manager/managertest"
)

// kinds lists the kinds that the manager looks up.
var kinds = managertest.Kinds{
	corev1.SchemeGroupVersion:        {"services": "Service", "pods": "Pod"},
	appsv1.SchemeGroupVersion:        {"deployments": "Deployment"},
	policyv1.SchemeGroupVersion:      {"poddisruptionbudgets": "PodDisruptionBudget"},
	cachev1alpha1.SchemeGroupVersion: {"memcacheds": "Memcached"},
}

func TestMain(m *testing.M) { managertest.Main(m, main) }

func isolate(t *testing.T) { managertest.Isolate(t, "WATCH_NAMESPACE", "MEMCACHED_IMAGE") }

// cluster starts an API server that serves the kinds, and returns the flag that names its kubeconfig.
func cluster(t *testing.T) string {
	return "--kubeconfig=" + managertest.Kubeconfig(t, (&managertest.APIServer{Kinds: kinds}).Start(t))
}

func TestRunRefuses(t *testing.T) {
	occupied := managertest.OccupiedAddress(t)
	ignorant := &managertest.APIServer{Kinds: kinds, Unknown: cachev1alpha1.SchemeGroupVersion.Group}
	tests := map[string]struct {
		args        []string
		environment map[string]string
		want        string
	}{
		"an unknown flag":   {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an invalid number": {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"a variable with an invalid namespace name": {
			environment: map[string]string{"WATCH_NAMESPACE": "shop,Bank"},
			want:        `WATCH_NAMESPACE=shop,Bank: "Bank" is not a namespace: `,
		},
		"a variable with a space in an image": {
			environment: map[string]string{"MEMCACHED_IMAGE": "memcached 1"},
			want:        "MEMCACHED_IMAGE=memcached 1: the name of an image has no spaces",
		},
		"no cluster": {want: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a probe address that another process uses": {
			args: []string{cluster(t), "--health-probe-bind-address=" + occupied},
			want: "--health-probe-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"a cluster that can't be reached":        {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, "127.0.0.1:1")}, want: "connection refused"},
		"a cluster that doesn't know Memcacheds": {args: []string{"--health-probe-bind-address=0", "--kubeconfig=" + managertest.Kubeconfig(t, ignorant.Start(t))}, want: "the cluster does not know Memcacheds: install the CRD with `make install`"},
		"no namespace for a Lease":               {args: []string{"--health-probe-bind-address=0", "--leader-elect", cluster(t)}, want: "unable to find leader election namespace"},
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
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error must be one line")
		})
	}
}

func TestRunPrintsHelp(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--help"}, &output)).To(Succeed())
	g.Expect(output.String()).To(ContainSubstring("how many Memcacheds to reconcile at the same time"))
	g.Expect(output.String()).To(ContainSubstring("(default $WATCH_NAMESPACE)"))
}

func TestRunPrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	var output bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &output)).To(Succeed(), "--version must work without a cluster")
	g.Expect(output.String()).To(Equal("memcached-operator unknown (revision unknown)\n"), "go test sets neither the version nor the revision")
}

func TestProcessAsksForItsOwnLeaseAndPods(t *testing.T) {
	g := NewWithT(t)
	isolate(t)
	server := &managertest.APIServer{Kinds: kinds}
	managertest.StartProcess(t, "--health-probe-bind-address=0", "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)),
		"--leader-elect", "--leader-election-namespace=shop")
	g.Eventually(server.Requests).WithTimeout(managertest.Timeout).Should(And(
		ContainElement(HavePrefix("GET /apis/coordination.k8s.io/v1/namespaces/shop/leases/memcached.example.com?")),
		ContainElement(And(HavePrefix("GET /api/v1/pods?"), ContainSubstring("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dmemcached-operator"))),
	), "see LeaderElectionID and ByObject in main.go")
}

func TestReadEnvironment(t *testing.T) {
	tests := map[string]struct {
		environment map[string]string
		namespaces  []string
		image       string
		// wantErr is a part of the expected error, or "" if there must be none.
		wantErr string
	}{
		"nothing is set":            {image: controller.DefaultImage},
		"both are empty":            {environment: map[string]string{"WATCH_NAMESPACE": "", "MEMCACHED_IMAGE": ""}, image: controller.DefaultImage},
		"one namespace":             {environment: map[string]string{"WATCH_NAMESPACE": "shop"}, namespaces: []string{"shop"}, image: controller.DefaultImage},
		"several namespaces":        {environment: map[string]string{"WATCH_NAMESPACE": "shop,bank"}, namespaces: []string{"shop", "bank"}, image: controller.DefaultImage},
		"an empty name in the list": {environment: map[string]string{"WATCH_NAMESPACE": "shop,"}, wantErr: `WATCH_NAMESPACE=shop,: "" is not a namespace`},
		"an image":                  {environment: map[string]string{"MEMCACHED_IMAGE": "registry.test:5000/memcached@sha256:0"}, image: "registry.test:5000/memcached@sha256:0"},
		"a space in the image":      {environment: map[string]string{"MEMCACHED_IMAGE": "memcached:1 "}, wantErr: "MEMCACHED_IMAGE=memcached:1 : the name of an image has no spaces"},
		"a tab in the image":        {environment: map[string]string{"MEMCACHED_IMAGE": "memcached\t:1"}, wantErr: "the name of an image has no spaces"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, want := manager.Default(), manager.Default()
			want.Namespaces = test.namespaces
			image, err := readEnvironment(&options, func(variable string) string { return test.environment[variable] })
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)), "see readEnvironment in main.go")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(image).To(Equal(test.image), "see readEnvironment in main.go")
			g.Expect(options.Namespaces).To(Equal(test.namespaces), "the operator must watch these namespaces, see readEnvironment in main.go")
			g.Expect(options).To(Equal(want), "see readEnvironment in main.go")
		})
	}
}

func TestProcessWatchesNamespaces(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"the variable sets them": {want: "town"},
		"a flag overrides them":  {args: []string{"--namespaces=shop"}, want: "shop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolate(t)
			t.Setenv("WATCH_NAMESPACE", "town")
			server := &managertest.APIServer{Kinds: kinds}
			managertest.StartProcess(t, append(test.args, "--health-probe-bind-address=0", "--kubeconfig="+managertest.Kubeconfig(t, server.Start(t)))...)
			listed := "GET /apis/cache.example.com/v1alpha1/namespaces/" + test.want + "/memcacheds?"
			g.Eventually(server.Requests).WithTimeout(managertest.Timeout).Should(ContainElement(HavePrefix(listed)))
			g.Expect(server.Requests()).NotTo(ContainElement(And(ContainSubstring("/memcacheds?"), Not(HavePrefix(listed)))))
		})
	}
}

func TestProcessEndsWhenToldTo(t *testing.T) {
	tests := map[string]struct {
		silent bool
		// readiness is the HTTP status of /readyz.
		readiness int
	}{
		"while it is working":                    {readiness: http.StatusOK},
		"while it waits for a silent API server": {silent: true, readiness: http.StatusInternalServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolate(t)
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
	isolate(t)
	process := managertest.StartProcess(t, "--colour=red")
	g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal("memcached-operator: flag provided but not defined: -colour: --help lists the flags\n"))
	g.Expect(process.Out.Contents()).To(BeEmpty())

	occupied := managertest.OccupiedAddress(t)
	process = managertest.StartProcess(t, "--health-probe-bind-address=0", "--metrics-bind-address="+occupied, cluster(t))
	g.Eventually(process).WithTimeout(managertest.Timeout).Should(gexec.Exit(1))
	g.Expect(string(process.Err.Contents())).To(Equal(
		"memcached-operator: --metrics-bind-address: listen tcp "+occupied+": bind: address already in use; choose another address, or 0 for none\n"),
		"nothing may be logged before the error, see CheckAddresses in manager/options.go")
}
