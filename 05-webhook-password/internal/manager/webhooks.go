package manager

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// enableWebhooks is the environment variable that turns the webhooks off, as in any project of kubebuilder.
const enableWebhooks = "ENABLE_WEBHOOKS"

// Where the certificates of the webhooks come from.
const (
	// CertsLocal: the process makes them, and registers itself by its URL. For a process outside of the cluster.
	CertsLocal = "local"
	// CertsFiles: somebody else writes them into a folder, such as cert-manager.
	CertsFiles = "files"
	// CertsRotated: the process makes them and keeps them in a Secret, which is mounted as that folder.
	CertsRotated = "rotated"
)

// minValidity is the shortest time in which serving.Local renews a certificate in peace.
const minValidity = 30 * time.Second

// WebhookOptions say how webhooks are served.
type WebhookOptions struct {
	// Enabled is false for a process without webhooks.
	Enabled bool
	// Certs is CertsLocal, CertsFiles or CertsRotated.
	Certs string
	// BindAddress is host and port; without a host it is that of every network.
	BindAddress string
	// CertPath is the folder with the certificate CertName and its key KeyName.
	CertPath, CertName, KeyName string
	// Validity is how long a certificate of CertsLocal is valid. It is renewed after two thirds of it.
	Validity time.Duration
}

func defaultWebhooks() WebhookOptions {
	return WebhookOptions{
		Enabled: true, Certs: CertsLocal, BindAddress: "127.0.0.1:9443",
		CertName: "tls.crt", KeyName: "tls.key", Validity: 24 * time.Hour,
	}
}

// ReadEnvironment takes ENABLE_WEBHOOKS, which is true or false.
func (o *Options) ReadEnvironment(getenv func(string) string) error {
	value := getenv(enableWebhooks)
	if value == "" {
		return nil
	}
	enabled, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("%s=%s: give true or false", enableWebhooks, value)
	}
	o.Webhooks.Enabled = enabled
	return nil
}

func (w *WebhookOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&w.Certs, "webhook-certs", w.Certs, "where the `certificates` of the webhooks come from: local (made and registered by URL, to run outside of the cluster), files, or rotated (made, and kept in a Secret)")
	flags.StringVar(&w.BindAddress, "webhook-bind-address", w.BindAddress, "`address` of the webhooks")
	flags.StringVar(&w.CertPath, "webhook-cert-path", w.CertPath, "`folder` with the certificate of the webhooks")
	flags.StringVar(&w.CertName, "webhook-cert-name", w.CertName, "`file` name of the certificate")
	flags.StringVar(&w.KeyName, "webhook-cert-key", w.KeyName, "`file` name of the certificate's key")
	flags.DurationVar(&w.Validity, "webhook-cert-validity", w.Validity, "how long a local certificate is valid; it is renewed after two thirds of that")
}

func (w *WebhookOptions) validate() error {
	if !w.Enabled {
		return nil
	}
	if _, _, err := w.hostAndPort(); err != nil {
		return err
	}
	switch w.Certs {
	case CertsLocal:
		return w.validateLocal()
	case CertsFiles, CertsRotated:
		if w.CertPath == "" {
			return fmt.Errorf("--webhook-certs=%s: give the folder by --webhook-cert-path", w.Certs)
		}
	default:
		return fmt.Errorf("--webhook-certs=%s: choose one of %s, %s, %s", w.Certs, CertsLocal, CertsFiles, CertsRotated)
	}
	if w.Certs == CertsRotated {
		return nil // the files come later
	}
	return findCertificate("--webhook-cert-path", w.CertPath, w.CertName, w.KeyName)
}

func (w *WebhookOptions) validateLocal() error {
	host, _, err := w.hostAndPort()
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil || !address.IsLoopback():
		return fmt.Errorf("--webhook-bind-address=%s: local webhooks need a loopback address, such as 127.0.0.1:9443", w.BindAddress)
	case w.CertPath != "":
		return errors.New("--webhook-cert-path is for --webhook-certs=files and rotated: leave it out")
	case w.Validity < minValidity:
		return fmt.Errorf("--webhook-cert-validity=%s: at least %s is needed", w.Validity, minValidity)
	}
	return nil
}

func (w *WebhookOptions) hostAndPort() (string, int, error) {
	host, text, err := net.SplitHostPort(w.BindAddress)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: give host and port, such as 127.0.0.1:9443", w.BindAddress)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: the port is a number from 1 to 65535", w.BindAddress)
	}
	return host, int(port), nil
}

// NameTheFlag turns the error of a webhook server whose address is taken into one that names the flag to change.
func (o *Options) NameTheFlag(err error) error {
	failed, isNetwork := errors.AsType[*net.OpError](err)
	if !errors.Is(err, syscall.EADDRINUSE) || !isNetwork || !o.Webhooks.Enabled || !o.Webhooks.isAt(failed.Addr) {
		return err
	}
	return fmt.Errorf("--webhook-bind-address=%s: another process uses it: end that one, or choose another port", o.Webhooks.BindAddress)
}

// isAt tells by the port whether the address is the webhooks': an empty host can be written in several ways.
func (w *WebhookOptions) isAt(address net.Addr) bool {
	_, port, err := w.hostAndPort()
	taken, isTCP := address.(*net.TCPAddr)
	return err == nil && isTCP && taken.Port == port
}

// serverOptions are those of a server that reads its certificate from files.
func (w *WebhookOptions) serverOptions() (ctrlwebhook.Options, error) {
	host, port, err := w.hostAndPort()
	return ctrlwebhook.Options{Host: host, Port: port, CertDir: w.CertPath, CertName: w.CertName, KeyName: w.KeyName}, err
}
