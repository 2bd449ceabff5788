package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"example.com/operator-workshop/internal/private"
)

// validity is how long certificates are valid. kubeadm's certificate authorities have the same lifetime.
const validity = 10 * 365 * 24 * time.Hour

// The certificate authorities, as in kubeadm: each server trusts only those that sign its clients' certificates.
const (
	// authority signs the certificates of users, and of the servers that users connect to.
	authority = "ca"
	// etcdAuthority is separate: otherwise every user could read and change everything in etcd.
	etcdAuthority = "etcd-ca"
	// frontProxyAuthority signs the certificates of clients that may act for other users, as the API server does when it
	// calls aggregated API servers.
	frontProxyAuthority = "front-proxy-ca"
)

// serviceName is the name under which pods reach the API server. The server's certificate always contains this name.
const serviceName = "kubernetes.default.svc"

// serviceAddress is the first address of serviceRange: that of the Service "kubernetes".
const serviceAddress = "10.96.0.1"

// identity describes a certificate to make, and its holder.
type identity struct {
	file   string
	signer string
	config certutil.Config
}

// identities returns an identity for each certificate in the folder pki-N except the authorities'. Each of these
// certificates except etcd's own is valid for one purpose only: for a server or for a client.
// Source of the clients' names and groups: kubeadm, and the bootstrap policy of RBAC.
func identities(hosts []string) []identity {
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	both := append(append([]x509.ExtKeyUsage{}, server...), client...)
	local := alternativeNames("localhost", loopback)
	public := alternativeNames(append([]string{
		"localhost", loopback, "kubernetes", "kubernetes.default", serviceName, serviceName + ".cluster.local", serviceAddress,
	}, hosts...)...)
	return []identity{
		// etcd's server also connects to itself, and then presents this certificate.
		{"etcd", etcdAuthority, certutil.Config{CommonName: "etcd", AltNames: local, Usages: both}},
		{"etcd-client", etcdAuthority, certutil.Config{CommonName: "kube-apiserver-etcd-client", Usages: client}},
		{"apiserver", authority, certutil.Config{CommonName: "kube-apiserver", AltNames: public, Usages: server}},
		{"controllers", authority, certutil.Config{CommonName: "kube-controllers", AltNames: local, Usages: server}},
		{"admin", authority, certutil.Config{CommonName: Administrator.Name, Organization: Administrator.Groups, Usages: client}},
		{"front-proxy-client", frontProxyAuthority, certutil.Config{CommonName: "front-proxy-client", Usages: client}},
	}
}

func alternativeNames(hosts ...string) certutil.AltNames {
	var names certutil.AltNames
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			names.IPs = append(names.IPs, ip)
		} else {
			names.DNSNames = append(names.DNSNames, host)
		}
	}
	return names
}

// pki is a folder of keys and certificates.
type pki struct{ dir string }

func (p pki) path(name string) string        { return filepath.Join(p.dir, name) }
func (p pki) certificate(name string) string { return p.path(name + ".crt") }
func (p pki) key(name string) string         { return p.path(name + ".key") }

// make fills the folder with new keys and certificates. If it is given the service accounts' old key, their tokens stay
// valid.
func (p pki) make(hosts []string, serviceAccountKey []byte) error {
	if err := errors.Join(os.RemoveAll(p.dir), os.MkdirAll(p.dir, 0o700)); err != nil {
		return private.Explain(err)
	}
	for _, name := range []string{authority, etcdAuthority, frontProxyAuthority} {
		if err := p.makeAuthority(name); err != nil {
			return fmt.Errorf("make the authority %s: %w", name, err)
		}
	}
	for _, each := range identities(hosts) {
		certificate, key, err := p.sign(each.signer, each.config)
		if err == nil {
			err = p.write(each.file, certificate, key)
		}
		if err != nil {
			return fmt.Errorf("make the certificate %s: %w", each.file, err)
		}
	}
	if serviceAccountKey == nil {
		var err error
		if serviceAccountKey, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
			return fmt.Errorf("make the key of service accounts: %w", err)
		}
	}
	return private.Explain(os.WriteFile(p.key("service-accounts"), serviceAccountKey, 0o600))
}

func (p pki) makeAuthority(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return err
	}
	content, err := certutil.EncodeCertificates(certificate)
	if err != nil {
		return err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return p.write(name, content, encoded)
}

func (p pki) write(name string, certificate, key []byte) error {
	return private.Explain(errors.Join(
		os.WriteFile(p.certificate(name), certificate, 0o600),
		os.WriteFile(p.key(name), key, 0o600),
	))
}

// sign makes a key, and a certificate for it, both PEM-encoded.
func (p pki) sign(signer string, config certutil.Config) (certificate, key []byte, err error) {
	authorities, err := certutil.CertsFromFile(p.certificate(signer))
	if err != nil {
		return nil, nil, err
	}
	secret, err := keyutil.PrivateKeyFromFile(p.key(signer))
	if err != nil {
		return nil, nil, err
	}
	signing, ok := secret.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%s contains no key that can sign", p.key(signer))
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:      pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames:     config.AltNames.DNSNames,
		IPAddresses:  config.AltNames.IPs,
		SerialNumber: serial,
		NotBefore:    authorities[0].NotBefore,
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  config.Usages,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, authorities[0], own.Public(), signing)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, err
	}
	if certificate, err = certutil.EncodeCertificates(signed); err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(own)
	return certificate, key, err
}
