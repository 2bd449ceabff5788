package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest"
)

func TestArguments(t *testing.T) {
	t.Setenv("KUBECONFIG", "/another/cluster")
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("INHERITED", "yes")
	described := Command{
		Args:           []string{"manager", "--kubeconfig={{.Kubeconfig}}", "--namespace={{.Namespace}}", "--elect={{.LeaderElection}}"},
		LeaderElection: []string{"--lease={{.LeaseNamespace}}/{{.Identity}}", "--times={{.LeaseDuration}},{{.RenewDeadline}},{{.RetryPeriod.Seconds}}"},
		Resync:         []string{"--resync={{.Resync}}"},
		Env:            []string{"WATCH_NAMESPACE={{.Namespace}}", "WEBHOOKS={{.WebhookPort}} {{.CertDir}}"},
	}
	always := []string{"manager", "--kubeconfig=/tmp/x/kubeconfig", "--namespace=here"}
	tests := map[string]struct {
		options operatortest.RunOptions
		want    []string
	}{
		"no options": {operatortest.RunOptions{}, []string{"--elect=false"}},
		"resyncs":    {operatortest.RunOptions{Resync: time.Minute}, []string{"--elect=false", "--resync=1m0s"}},
		"leader election": {
			operatortest.RunOptions{LeaderElection: &operatortest.LeaderElection{
				Namespace: "there", Identity: "first", LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second / 2,
			}},
			[]string{"--elect=true", "--lease=there/first", "--times=3s,2s,0.5"},
		},
		"webhooks": {
			operatortest.RunOptions{Webhooks: &operatortest.WebhookServer{Port: 9443, CertDir: "/tmp/certificates"}},
			[]string{"--elect=false"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.options.Namespace = "here"
			command, err := described.command(valuesOf("/tmp/x/kubeconfig", test.options))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(command.Args).To(Equal(append(always[:3:3], test.want...)))
			g.Expect(command.Env).To(ContainElements("KUBECONFIG=/tmp/x/kubeconfig", "KUBECACHEDIR=/tmp/x/kubectl-cache", "WATCH_NAMESPACE=here", "INHERITED=yes"))
			if webhooks := test.options.Webhooks; webhooks != nil {
				g.Expect(command.Env).To(ContainElement("WEBHOOKS=9443 /tmp/certificates"))
			}
			g.Expect(command.Env).NotTo(ContainElement(MatchRegexp("^(KUBECONFIG=/another|USE_EXISTING_CLUSTER|KUBERNETES_SERVICE)")))
		})
	}
}

func TestArgumentsWithoutANamespace(t *testing.T) {
	g := NewWithT(t)
	args := []string{"--watch={{.Namespace}}", "--namespace", "{{.Namespace}}", "{{with .Namespace}}--only={{.}}{{end}}", "{{- if .Namespace}}--one{{else}}--all{{end}}"}
	g.Expect(Values{}.arguments(args)).To(Equal([]string{"--watch=", "--namespace", "", "--all"}))
	g.Expect(Values{Namespace: "here"}.arguments(args)).To(Equal([]string{"--watch=here", "--namespace", "here", "--only=here", "--one"}))
}

func TestServesWebhooks(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Command{Args: []string{"manager", "--port={{.FreePort}}"}}.ServesWebhooks()).To(BeFalse())
	g.Expect(Command{Args: []string{"manager", "--webhook-port={{.WebhookPort}}"}}.ServesWebhooks()).To(BeTrue())
	g.Expect(Command{Args: []string{"manager"}, Env: []string{"PORT={{ .WebhookPort }}"}}.ServesWebhooks()).To(BeTrue())
	g.Expect(Command{Args: []string{"manager", "--webhook-port={{.WebhookPort}}"}}.WebhooksOnly()).To(BeFalse())
	g.Expect(Command{Args: []string{"manager", "{{if .WebhooksOnly}}--controllers=false{{end}}"}}.WebhooksOnly()).To(BeTrue())
}

func TestCheckFindsAProgramInTheWorkingFolder(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.WriteFile("manager", []byte("#!/bin/sh\n"), 0o700)).To(Succeed())
	g.Expect(Command{Args: []string{"./manager"}, Dir: "."}.Check()).To(Succeed())
}

func TestFreePort(t *testing.T) {
	g := NewWithT(t)
	filled, err := Values{}.fill([]string{"{{.FreePort}}"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filled).To(ConsistOf(MatchRegexp("^[1-9][0-9]*$")))
}

func TestCommandsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte("text"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		command Command
		want    string
	}{
		"no program": {Command{}, "start the operator: Command.Args is empty: its first element must be the program"},
		"an unknown placeholder": {
			Command{Args: []string{"manager", "--kubeconfig={{.Kubecfg}}"}},
			`start the operator: fill in "--kubeconfig={{.Kubecfg}}": template: placeholder:1:15: executing "placeholder" at <.Kubecfg>: ` +
				`can't evaluate field Kubecfg in type process.Values (the placeholders are the fields of process.Values, such as {{.Namespace}})`,
		},
		"an unfinished placeholder": {
			Command{Args: []string{"manager"}, Env: []string{"A={{.Namespace"}},
			`start the operator: fill in "A={{.Namespace": template: placeholder:1: unclosed action (the placeholders are the fields of process.Values, such as {{.Namespace}})`,
		},
		"a program that is not on the PATH": {
			Command{Args: []string{"no-such-manager"}},
			`start the operator: exec: "no-such-manager": executable file not found in $PATH: build the program before the tests; a relative path counts from Command.Dir, and a script needs the interpreter that its first line names`,
		},
		"a missing program": {
			Command{Args: []string{"./manager"}, Dir: dir},
			"start the operator: fork/exec ./manager: no such file or directory: build the program before the tests; a relative path counts from Command.Dir, and a script needs the interpreter that its first line names",
		},
		"a file that is not executable": {
			Command{Args: []string{plain}}, "start the operator: fork/exec " + plain + ": permission denied: make the file executable with chmod +x",
		},
		"a file that is not a program": {
			Command{Args: []string{foreign}},
			"start the operator: fork/exec " + foreign + ": exec format error: build the program for this machine, or begin a script with #!/bin/sh",
		},
		"a missing folder": {
			Command{Args: []string{plain}, Dir: filepath.Join(dir, "missing")},
			"start the operator in Command.Dir: stat " + filepath.Join(dir, "missing") + ": no such file or directory",
		},
		"a folder of logs that can't be created": {
			Command{Args: []string{plain}, Logs: filepath.Join(plain, "logs")},
			"create the folder of the operator's logs: mkdir " + plain + ": not a directory",
		},
	}
	server, _ := listener(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.command.Run(t.Context(), restConfig(server), operatortest.RunOptions{Namespace: "here"})
			NewWithT(t).Expect(err).To(MatchError(test.want))
		})
	}
}
