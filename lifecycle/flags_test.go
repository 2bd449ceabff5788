package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// program has the flags of an operator that uses this package.
type program struct {
	Options
	Flags
}

func parse(args ...string) (program, string, error) {
	p := program{Options: DefaultOptions()}
	set := flag.NewFlagSet("operator", flag.ContinueOnError)
	p.Options.AddFlags(set)
	p.Flags.AddFlags(set)
	var output bytes.Buffer
	err := Parse(set, args, &output)
	if err == nil {
		err = errors.Join(p.Options.Validate(), p.Flags.Validate())
	}
	return p, output.String(), err
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                          {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an argument that is no flag":              {args: []string{"start"}, want: `unexpected argument "start": --help lists the flags`},
		"a rate of 0":                              {args: []string{"--kube-api-qps=0"}, want: "--kube-api-qps=0 --kube-api-burst=-1: give a positive rate and a burst of at least 1, or a negative --kube-api-qps for no limit"},
		"a rate without a burst":                   {args: []string{"--kube-api-qps=5"}, want: "--kube-api-qps=5 --kube-api-burst=-1: give a positive rate and a burst of at least 1, or a negative --kube-api-qps for no limit"},
		"a Lease that is shorter than its renewal": {args: []string{"--leader-elect", "--leader-election-lease-duration=5s"}, want: "--leader-election-renew-deadline=10s must be shorter than --leader-election-lease-duration=5s, or two replicas could work at the same time"},
		"a Lease of 15 and a half seconds":         {args: []string{"--leader-elect", "--leader-election-lease-duration=15500ms"}, want: "--leader-election-lease-duration=15.5s: give whole seconds, at least 1s"},
		"a retry that comes too late":              {args: []string{"--leader-elect", "--leader-election-retry-period=9s"}, want: "--leader-election-retry-period=9s: give more than 0 and less than 8.333333333s, so that a renewal can be tried again before --leader-election-renew-deadline=10s"},
		"no namespace for the Lease":               {args: []string{"--leader-elect", "--leader-election-namespace="}, want: "--leader-election-namespace is empty: name the namespace for the Lease"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(test.args...)
			NewWithT(t).Expect(err).To(MatchError(test.want))
		})
	}
}

func TestParse(t *testing.T) {
	g := NewWithT(t)
	parsed, _, err := parse()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.Options).To(Equal(DefaultOptions()))
	g.Expect(parsed.QPS).To(BeNumerically("<", 0), "the client must have no limit of its own")

	parsed, _, err = parse("--leader-elect", "--leader-election-namespace=shop", "--leader-election-identity=one", "--leader-election-lease-duration=4s",
		"--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s", "--metrics-bind-address=0", "--health-probe-bind-address=:1",
		"--kubeconfig=file", "--kube-api-qps=5", "--kube-api-burst=7", "--version", "-v=4")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.Options).To(Equal(Options{MetricsBindAddress: Disabled, HealthProbeBindAddress: ":1", LeaderElection: LeaderElection{
		Enabled: true, Namespace: "shop", Identity: "one", LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: time.Second,
	}}))
	g.Expect(parsed.Flags).To(Equal(Flags{Kubeconfig: "file", QPS: 5, Burst: 7, Version: true}))

	_, help, err := parse("-h")
	g.Expect(err).To(MatchError(flag.ErrHelp))
	g.Expect(help).To(And(ContainSubstring("  -kubeconfig file"), ContainSubstring("  -leader-elect"), ContainSubstring("  -v value")))
}

func TestRESTConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	tests := map[string]struct {
		flag, variable string
		// wantErr is part of the error. It is "" if there must be no error.
		wantErr string
	}{
		"the flag overrides the variable":   {flag: file, variable: "missing"},
		"the variable names the kubeconfig": {variable: file},
		"there is no kubeconfig and no pod": {wantErr: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"the flag names a missing file":     {flag: "missing", wantErr: "read the kubeconfig: stat missing: no such file"},
		"the variable names a missing file": {variable: "missing", wantErr: "KUBECONFIG=missing names no kubeconfig: set it to the path of one"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", test.variable)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			config, err := (&Flags{Kubeconfig: test.flag, QPS: 5, Burst: 7}).RESTConfig()
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal("http://127.0.0.1:1"))
			g.Expect([]any{config.QPS, config.Burst}).To(Equal([]any{float32(5), 7}))
		})
	}
}

func TestCheckInstalled(t *testing.T) {
	client := &fake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "foos"}}},
	}}}
	tests := map[string]struct {
		version, resource string
		want              error
	}{
		"served":           {"v1", "foos", nil},
		"another resource": {"v1", "bars", ErrNotInstalled},
		"another version":  {"v2", "foos", ErrNotInstalled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckInstalled(t.Context(), client, schema.GroupVersionResource{Group: "example.com", Version: test.version, Resource: test.resource})
			if test.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.want))
		})
	}
}

func TestCheckInstalledIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := CheckInstalled(ctx, kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:1"}).Discovery(), schema.GroupVersionResource{})
	NewWithT(t).Expect(err).To(MatchError(context.Canceled), "nothing is known about the kind")
}

func TestCheckInstalledTriesAgain(t *testing.T) {
	g := NewWithT(t)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		if requests++; requests < 3 {
			writer.WriteHeader(http.StatusInternalServerError)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write([]byte(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [{"name": "foos", "kind": "Foo"}]}`))
	}))
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
	g.Expect(CheckInstalled(t.Context(), client.Discovery(), resource)).To(Succeed())
	g.Expect(requests).To(Equal(3))
}
