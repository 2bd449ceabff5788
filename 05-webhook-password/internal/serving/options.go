package serving

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"example.com/operator-workshop/manager"
)

// The environment variables that [Options.ReadEnvironment] reads.
const (
	// enableWebhooks switches the webhooks off if it is false, as in any kubebuilder project.
	enableWebhooks = "ENABLE_WEBHOOKS"
	podNamespace   = "POD_NAMESPACE"
)

// The sources of the webhooks' certificates.
const (
	// CertsLocal: the process, which runs outside the cluster, makes a certificate in memory, and registers itself by
	// its URL.
	CertsLocal = "local"
	// CertsFiles: the process reads a certificate from a folder, for example a mounted Secret of cert-manager.
	CertsFiles = "files"
	// CertsRotated: the process makes the certificates and keeps them in a Secret. It reads them from the folder at which
	// the Secret is mounted.
	CertsRotated = "rotated"
)

// Options say how webhooks are served. [Default] returns those of a process on your own machine.
type Options struct {
	// Enabled is false for a process without webhooks.
	Enabled bool
	// Certs is CertsLocal, CertsFiles or CertsRotated.
	Certs string
	// BindAddress is the host and the port on which the webhook server listens. Without a host, it listens on all
	// interfaces.
	BindAddress string
	// CertPath is the folder with the certificate CertName and its key KeyName.
	CertPath, CertName, KeyName string
	// Namespace is the namespace of the pod. CertsRotated keeps its Secret there.
	Namespace string
}

// Default returns the options of a process on your own machine.
func Default() Options {
	return Options{Enabled: true, Certs: CertsLocal, BindAddress: "127.0.0.1:9443", CertName: "tls.crt", KeyName: "tls.key"}
}

// ReadEnvironment sets Namespace from POD_NAMESPACE, and Enabled from ENABLE_WEBHOOKS, which must be a boolean or empty.
// If it is empty, Enabled stays as it is.
func (o *Options) ReadEnvironment(getenv func(string) string) error {
	o.Namespace = getenv(podNamespace)
	value := getenv(enableWebhooks)
	if value == "" {
		return nil
	}
	enabled, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("%s=%s: must be true or false", enableWebhooks, value)
	}
	o.Enabled = enabled
	return nil
}

// AddFlags adds a flag for each option that does not come from the environment. The option's current value is the
// flag's default.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Certs, "webhook-certs", o.Certs, "where the `certificates` of the webhooks come from: local (outside the cluster: the operator makes one, and registers itself by URL), files, or rotated (the operator makes them, and keeps them in a Secret)")
	flags.StringVar(&o.BindAddress, "webhook-bind-address", o.BindAddress, "`address` of the webhooks")
	flags.StringVar(&o.CertPath, "webhook-cert-path", o.CertPath, "`folder` with the certificate of the webhooks")
	flags.StringVar(&o.CertName, "webhook-cert-name", o.CertName, "`file` name of the certificate")
	flags.StringVar(&o.KeyName, "webhook-cert-key", o.KeyName, "`file` name of the certificate's key")
}

// Validate checks that the options are valid and fit together, unless webhooks are off. Its error names the flag or the
// environment variable to change.
func (o *Options) Validate() error {
	if !o.Enabled {
		return nil
	}
	host, _, err := o.hostAndPort()
	if err != nil {
		return err
	}
	switch o.Certs {
	case CertsLocal:
		if address, err := netip.ParseAddr(host); err != nil || !address.IsLoopback() {
			return fmt.Errorf("--webhook-bind-address=%s: local webhooks need a loopback address, such as 127.0.0.1:9443", o.BindAddress)
		}
		if o.CertPath != "" {
			return errors.New("--webhook-cert-path is for --webhook-certs=files and rotated: leave it out")
		}
		return nil
	case CertsFiles, CertsRotated:
		return o.validateCertPath()
	}
	return fmt.Errorf("--webhook-certs=%s: choose one of %s, %s, %s", o.Certs, CertsLocal, CertsFiles, CertsRotated)
}

func (o *Options) validateCertPath() error {
	switch {
	case o.CertPath == "":
		return fmt.Errorf("--webhook-certs=%s: set the folder with --webhook-cert-path", o.Certs)
	case o.Certs == CertsFiles:
		return manager.FindCertificate("--webhook-cert-path", o.CertPath, o.CertName, o.KeyName)
	case o.Namespace == "":
		return fmt.Errorf("--webhook-certs=%s: set %s to the namespace of the Secret %s", o.Certs, podNamespace, certificateSecret)
	}
	return nil // the files will appear later
}

func (o *Options) hostAndPort() (string, int, error) {
	host, text, err := net.SplitHostPort(o.BindAddress)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: set host and port, such as 127.0.0.1:9443", o.BindAddress)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", 0, fmt.Errorf("--webhook-bind-address=%s: the port must be a number from 1 to 65535", o.BindAddress)
	}
	return host, int(port), nil
}

// CheckAddress returns an error if the server can't listen on the address, for example because it is already in use.
// The error names the flag. The server would notice too, but only after a page of logs.
func (o *Options) CheckAddress() error {
	if !o.Enabled {
		return nil
	}
	listener, err := net.Listen("tcp", o.BindAddress)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--webhook-bind-address=%s: another process uses it: end that one, or choose another port", o.BindAddress)
	}
	if err != nil {
		return fmt.Errorf("--webhook-bind-address=%s: %w", o.BindAddress, err)
	}
	return listener.Close()
}
