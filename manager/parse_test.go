package manager_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"

	"example.com/operator-workshop/manager"
	"example.com/operator-workshop/manager/managertest"
)

// parse does what a main function does before it makes a manager.
func parse(output *bytes.Buffer, args ...string) (manager.Options, *flag.FlagSet, error) {
	options := manager.Default()
	flags := flag.NewFlagSet("guestbook-controller", flag.ContinueOnError)
	flags.SetOutput(output)
	options.AddFlags(flags, "Guestbooks")
	err := options.Parse(flags, args, "v1.2.3", "4ec1fcb")
	return options, flags, err
}

func TestParse(t *testing.T) {
	g := NewWithT(t)
	options, _, err := parse(&bytes.Buffer{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options).To(Equal(manager.Default()))

	options, _, err = parse(&bytes.Buffer{}, "--namespaces=shop,bank", "--zap-log-level=debug", "--max-concurrent-reconciles", "7")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Namespaces).To(Equal([]string{"shop", "bank"}))
	g.Expect(options.Logging.Level.Enabled(zapcore.DebugLevel)).To(BeTrue())
	g.Expect(options.MaxConcurrentReconciles).To(Equal(7))
}

func TestParseRefusesInvalidArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":               {args: []string{"--colour=red"}, want: "flag provided but not defined: -colour: --help lists the flags"},
		"an argument":                   {args: []string{"start"}, want: `unexpected argument "start": --help lists the flags`},
		"a word for a number":           {args: []string{"--max-concurrent-reconciles=many"}, want: `invalid value "many" for flag -max-concurrent-reconciles: parse error: --help lists the flags`},
		"no worker":                     {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"no resync":                     {args: []string{"--resync-period=0s"}, want: "--resync-period=0s: give a positive duration"},
		"a namespace in capitals":       {args: []string{"--namespaces=shop,Bank"}, want: `invalid value "shop,Bank" for flag -namespaces: "Bank" is not a namespace: `},
		"an empty list of namespaces":   {args: []string{"--namespaces="}, want: `"" is not a namespace: `},
		"a certificate that is missing": {args: []string{"--metrics-cert-path=missing"}, want: "--metrics-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"a certificate without TLS":     {args: []string{"--metrics-secure=false", "--metrics-cert-path=certs"}, want: "--metrics-cert-path is for TLS: remove --metrics-secure=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var output bytes.Buffer
			_, _, err := parse(&output, test.args...)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(strings.TrimSpace(err.Error())).NotTo(ContainSubstring("\n"), "an error must be a single line")
			g.Expect(output.String()).To(BeEmpty(), "Parse must not print the error, because its caller does")
		})
	}
}

func TestParsePrintsHelp(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	_, _, err := parse(&output, "--help")
	g.Expect(err).To(MatchError(flag.ErrHelp))
	for _, name := range []string{"kubeconfig", "namespaces", "leader-elect", "metrics-bind-address", "health-probe-bind-address", "version", "zap-log-level"} {
		g.Expect(output.String()).To(ContainSubstring("  -" + name))
	}
	g.Expect(output.String()).To(ContainSubstring("how many Guestbooks to reconcile"))
}

func TestParsePrintsTheVersion(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	_, _, err := parse(&output, "--version")
	g.Expect(err).To(MatchError(flag.ErrHelp))
	g.Expect(output.String()).To(Equal("guestbook-controller v1.2.3 (revision 4ec1fcb)\n"))
}

func TestGetConfigSaysWhyThePodHasNoCluster(t *testing.T) {
	g := NewWithT(t)
	managertest.Isolate(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	_, flags, err := parse(&bytes.Buffer{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = manager.GetConfig(flags)
	g.Expect(err).To(MatchError(And(ContainSubstring("find the pod's cluster: "), ContainSubstring("serviceaccount/token"))))
}

func TestGetConfig(t *testing.T) {
	nonsense := filepath.Join(t.TempDir(), "nonsense")
	NewWithT(t).Expect(os.WriteFile(nonsense, []byte("not: [a kubeconfig"), 0o600)).To(Succeed())
	one, other := managertest.Kubeconfig(t, "127.0.0.1:1"), managertest.Kubeconfig(t, "127.0.0.1:2")
	tests := map[string]struct {
		args       []string
		kubeconfig string
		// want is the address, and wantErr is part of the error.
		want, wantErr string
	}{
		"neither a flag nor a variable nor a pod": {wantErr: "no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod"},
		"a flag":                        {args: []string{"--kubeconfig=" + one}, want: "http://127.0.0.1:1"},
		"a variable":                    {kubeconfig: one, want: "http://127.0.0.1:1"},
		"a flag overrides a variable":   {args: []string{"--kubeconfig=" + one}, kubeconfig: other, want: "http://127.0.0.1:1"},
		"a flag for a missing file":     {args: []string{"--kubeconfig=missing"}, wantErr: "read the kubeconfig: stat missing: no such file or directory"},
		"a variable for a missing file": {kubeconfig: "missing", wantErr: "read the kubeconfig: "},
		"a malformed kubeconfig":        {args: []string{"--kubeconfig=" + nonsense}, wantErr: "read the kubeconfig: error loading config file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			managertest.Isolate(t)
			t.Setenv("KUBECONFIG", test.kubeconfig)
			_, flags, err := parse(&bytes.Buffer{}, test.args...)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := manager.GetConfig(flags)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal(test.want))
		})
	}
}
