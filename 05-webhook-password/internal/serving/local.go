package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	defaultValidity = 24 * time.Hour
	// maxCheckInterval is how long a user waits at most who has deleted what is registered.
	maxCheckInterval = 5 * time.Second
	// checksPerValidity is how many checks there are at least in the life of a
	// certificate: three in each sixth, so that one or two that fail do no harm.
	checksPerValidity = 18
	minValidity       = 3 * time.Second
)

// LocalOptions say where webhooks are served for a run outside of the cluster.
type LocalOptions struct {
	// Address is the host and the port that the server binds and the API server
	// calls, such as 127.0.0.1:9443.
	Address string
	// Validity is that of the certificates, 24 hours if zero.
	Validity time.Duration
	// CheckInterval is how often the registration is put right if somebody has
	// changed it. At most an 18th of Validity; that or 5 seconds, the shorter one, if zero.
	CheckInterval time.Duration
	// Clock is what certificates are dated by, the real one if nil.
	Clock clock.PassiveClock
}

// Local serves webhooks from wherever this process runs. It makes the certificates,
// tells the API server the address and the CA as long as the process runs, and
// takes everything back at its end.
type Local struct {
	address   string
	host      string
	port      int
	interval  time.Duration
	authority *Authority

	client client.Client
	// listening returns nil once the webhook server can be reached.
	listening healthz.Checker
	// listened is false as long as this process can't have registered anything. What
	// is registered at its address is then another's, who has the port.
	listened   bool
	registered atomic.Bool
}

var (
	_ manager.Runnable               = (*Local)(nil)
	_ manager.LeaderElectionRunnable = (*Local)(nil)
)

// NewLocal makes the certificates. The API server is told nothing yet.
func NewLocal(options LocalOptions) (*Local, error) {
	options = options.complete()
	if least := max(checksPerValidity*options.CheckInterval, minValidity); options.Validity < least {
		return nil, fmt.Errorf("certificates that are valid for %s can't be rotated in time: make it at least %s", options.Validity, least)
	}
	host, port, err := splitAddress(options.Address)
	if err != nil {
		return nil, fmt.Errorf("webhook address %q: %w", options.Address, err)
	}
	authority, err := NewAuthority(host, options.Validity, options.Clock)
	if err != nil {
		return nil, err
	}
	return &Local{
		address:   net.JoinHostPort(host, strconv.Itoa(port)),
		host:      host,
		port:      port,
		interval:  options.CheckInterval,
		authority: authority,
	}, nil
}

func (o LocalOptions) complete() LocalOptions {
	if o.Validity == 0 {
		o.Validity = defaultValidity
	}
	if o.CheckInterval == 0 {
		o.CheckInterval = min(maxCheckInterval, o.Validity/checksPerValidity)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// splitAddress refuses what a server can listen at but nobody can call.
func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errors.New("give a host and a port, such as 127.0.0.1:9443")
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is no port from 1 to 65535", text)
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		return "", 0, errors.New("name one address that the API server can call, such as 127.0.0.1")
	}
	if problems := validation.IsDNS1123Subdomain(host); ip == nil && len(problems) > 0 {
		return "", 0, fmt.Errorf("%q is neither an IP address nor a host name", host)
	}
	return host, port, nil
}

// ServerOptions are those of a webhook server that shows the present certificate. It reads no file.
func (l *Local) ServerOptions() ctrlwebhook.Options {
	return ctrlwebhook.Options{
		Host:    l.host,
		Port:    l.port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = l.authority.GetCertificate }},
	}
}

// SetupWithManager makes the manager register its webhook server, which must have
// been made with [Local.ServerOptions], and say that it is ready only once that is done.
func (l *Local) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	// The manager's own client reads from a cache, which would watch every such object of the cluster.
	if l.client, err = client.New(mgr.GetConfig(), client.Options{Scheme: newScheme(), HTTPClient: mgr.GetHTTPClient()}); err != nil {
		return fmt.Errorf("make the client that registers webhooks: %w", err)
	}
	l.listening = mgr.GetWebhookServer().StartedChecker()
	if err := mgr.AddReadyzCheck("webhooks", l.ready); err != nil {
		return fmt.Errorf("add the readiness check of webhooks: %w", err)
	}
	if err := mgr.Add(l); err != nil {
		return fmt.Errorf("add the registration of webhooks: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks are served by every process.
func (*Local) NeedLeaderElection() bool { return false }

func (l *Local) ready(*http.Request) error {
	if !l.registered.Load() {
		return errors.New("the webhooks are not registered yet")
	}
	return nil
}
