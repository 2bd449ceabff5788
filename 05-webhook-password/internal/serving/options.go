package serving

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

	"example.com/operator-workshop/manager"
)

// enableWebhooks is the environment variable that turns the webhooks off, as in any project of kubebuilder.
const enableWebhooks = "ENABLE_WEBHOOKS"

// Where the certificates of the webhooks come from.
const (
	// CertsLocal: the process makes them, and registers itself by its URL. For a process outside of the cluster.
	CertsLocal = "local"
	// CertsFiles: another program writes them into a folder, such as cert-manager.
	CertsFiles = "files"
	// CertsRotated: the process makes them and keeps them in a Secret, which is mounted as that folder.
	CertsRotated = "rotated"
)

// minLocalValidity is the shortest time in which [Local] renews a certificate in peace.
const minLocalValidity = 30 * time.Second

// Options say how webhooks are served. [Default] returns sensible ones.
type Options struct {
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

// Default returns the options of a process on your own machine.
func Default() Options {
	return Options{
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
	o.Enabled = enabled
	return nil
}

// AddFlags adds a flag for each option but Enabled, with its present value as the default.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Certs, "webhook-certs", o.Certs, "where the `certificates` of the webhooks come from: local (made and registered by URL, to run outside of the cluster), files, or rotated (made, and kept in a Secret)")
	flags.StringVar(&o.BindAddress, "webhook-bind-address", o.BindAddress, "`address` of the webhooks")
	flags.StringVar(&o.CertPath, "webhook-cert-path", o.CertPath, "`folder` with the certificate of the webhooks")
	flags.StringVar(&o.CertName, "webhook-cert-name", o.CertName, "`file` name of the certificate")
	flags.StringVar(&o.KeyName, "webhook-cert-key", o.KeyName, "`file` name of the certificate's key")
	flags.DurationVar(&o.Validity, "webhook-cert-validity", o.Validity, "how long a local certificate is valid; it is renewed after two thirds of that")
}

// Validate returns an error that names the flag to change.
func (o *Options) Validate() error {
	if !o.Enabled {
		return nil
	}
	if _, _, err := o.hostAndPort(); err != nil {
		return err
	}
	switch o.Certs {
	case CertsLocal:
		return o.validateLocal()
	case CertsFiles, CertsRotated:
		if o.CertPath == "" {
			return fmt.Errorf("--webhook-certs=%s: give the folder by --webhook-cert-path", o.Certs)
		}
	default:
		return fmt.Errorf("--webhook-certs=%s: choose one of %s, %s, %s", o.Certs, CertsLocal, CertsFiles, CertsRotated)
	}
	if o.Certs == CertsRotated {
		return nil // the files come later
	}
	return manager.FindCertificate("--webhook-cert-path", o.CertPath, o.CertName, o.KeyName)
}

func (o *Options) validateLocal() error {
	host, _, err := o.hostAndPort()
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil || !address.IsLoopback():
		return fmt.Errorf("--webhook-bind-address=%s: local webhooks need a loopback address, such as 127.0.0.1:9443", o.BindAddress)
	case o.CertPath != "":
		return errors.New("--webhook-cert-path is for --webhook-certs=files and rotated: leave it out")
	case o.Validity < minLocalValidity:
		return fmt.Errorf("--webhook-cert-validity=%s: at least %s is needed", o.Validity, minLocalValidity)
	}
	return nil
}

func (o *Options) hostAndPort() (string, int, error) {
	host, text, err := net.SplitHostPort(o.BindAddress)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: give host and port, such as 127.0.0.1:9443", o.BindAddress)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: the port is a number from 1 to 65535", o.BindAddress)
	}
	return host, int(port), nil
}

// NameTheFlag turns the error of a webhook server whose address is taken into one that names the flag to change.
func (o *Options) NameTheFlag(err error) error {
	failed, isNetwork := errors.AsType[*net.OpError](err)
	if !errors.Is(err, syscall.EADDRINUSE) || !isNetwork || !o.Enabled || !o.isAt(failed.Addr) {
		return err
	}
	return fmt.Errorf("--webhook-bind-address=%s: another process uses it: end that one, or choose another port", o.BindAddress)
}

// isAt tells by the port whether the address is the webhooks': an empty host can be written in several ways.
func (o *Options) isAt(address net.Addr) bool {
	_, port, err := o.hostAndPort()
	taken, isTCP := address.(*net.TCPAddr)
	return err == nil && isTCP && taken.Port == port
}

// serverOptions are those of a server that reads its certificate from files.
func (o *Options) serverOptions() (ctrlwebhook.Options, error) {
	host, port, err := o.hostAndPort()
	return ctrlwebhook.Options{Host: host, Port: port, CertDir: o.CertPath, CertName: o.CertName, KeyName: o.KeyName}, err
}
