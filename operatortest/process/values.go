package process

import (
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/operatortest"
)

// loopback is the only address that the proxy listens on.
const loopback = "127.0.0.1"

// Values are the fields that the templates of a [Command] can use, such as {{.Namespace}}. If a flag expects a number of
// seconds, append .Seconds to a duration, as in {{.LeaseDuration.Seconds}}.
type Values struct {
	// Kubeconfig is the path of the operator's kubeconfig file. The namespace in it is Namespace.
	Kubeconfig string
	// Namespace is the only namespace that the operator may read and write. In a trial that
	// [operatortest.Operator.AllNamespaces] permits, and for a process that only serves webhooks (see WebhooksOnly), it
	// is empty, which means all namespaces.
	Namespace string
	// Resync is how often the informers should pass all objects to the handlers again. 0s means the
	// operator's default.
	Resync time.Duration
	// LeaderElection is true if the operator must elect a leader. The next five fields are set only then.
	LeaderElection bool
	// LeaseNamespace is the Lease's namespace; Identity is this candidate's name in the Lease.
	LeaseNamespace, Identity string
	// LeaseDuration is how long others wait for a silent leader, RenewDeadline is how long a leader tries to renew the
	// Lease before it gives up, and RetryPeriod is the pause between tries.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// WebhookPort is the port on 127.0.0.1 on which to serve webhooks; CertDir is the folder with tls.crt and tls.key for
	// it. They are 0 and empty if the operator has no webhooks to serve.
	WebhookPort int
	CertDir     string
	// WebhooksOnly is true for the one process whose webhooks the API server calls. If a template uses WebhooksOnly, that
	// process must start no controllers, and Namespace is empty for it: its webhooks may look up objects in all namespaces.
	WebhooksOnly bool
}

func valuesOf(kubeconfig string, options operatortest.RunOptions) Values {
	values := Values{Kubeconfig: kubeconfig, Namespace: options.Namespace, Resync: options.Resync}
	if election := options.LeaderElection; election != nil {
		values.LeaderElection = true
		values.LeaseNamespace, values.Identity = election.Namespace, election.Identity
		values.LeaseDuration, values.RenewDeadline, values.RetryPeriod = election.LeaseDuration, election.RenewDeadline, election.RetryPeriod
	}
	if webhooks := options.Webhooks; webhooks != nil {
		values.WebhookPort, values.CertDir, values.WebhooksOnly = webhooks.Port, webhooks.CertDir, webhooks.Only
	}
	return values
}

// FreePort returns a TCP port on 127.0.0.1 that is free now, and chosen anew on each call.
func (Values) FreePort() (int, error) {
	return controlplane.FreePort()
}

// conditional matches a template whose condition may leave it empty on purpose.
var conditional = regexp.MustCompile(`\{\{-?\s*(if|with)\s`)

// arguments fills in the templates of arguments, and leaves out those that a condition makes empty.
func (v Values) arguments(templates []string) ([]string, error) {
	filled, err := v.fill(templates)
	if err != nil {
		return nil, err
	}
	var args []string
	for i, text := range filled {
		if text != "" || !conditional.MatchString(templates[i]) {
			args = append(args, text)
		}
	}
	return args, nil
}

// fill executes the templates.
func (v Values) fill(templates []string) ([]string, error) {
	filled := make([]string, len(templates))
	for i, text := range templates {
		parsed, err := template.New("placeholder").Parse(text)
		if err != nil {
			return nil, misplaced(text, err)
		}
		var result strings.Builder
		if err := parsed.Execute(&result, v); err != nil {
			return nil, misplaced(text, err)
		}
		filled[i] = result.String()
	}
	return filled, nil
}

func misplaced(text string, err error) error {
	return fmt.Errorf("start the operator: fill in %q: %w (the placeholders are the fields of process.Values, such as {{.Namespace}})", text, err)
}
