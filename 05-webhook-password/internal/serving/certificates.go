package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
)

// clockSkew is how far behind this machine's clock that of the API server may be.
const clockSkew = time.Minute

// issued is a serving certificate with its key, and the CA that signed it. The CA's
// key is gone: it signs one certificate, so nobody can ever have it sign another.
type issued struct {
	ca          []byte // in PEM
	serving     tls.Certificate
	from, until time.Time // until is when it may expire, up to a second before it does
}

func (i *issued) expired(now time.Time) bool { return !now.Before(i.until) }

// issue uses crypto/x509 itself: client-go's util/cert makes a CA that is valid for
// ten years from the real time on, and cert-controller a certificate without IP addresses.
func issue(host string, from, until time.Time) (*issued, error) {
	authority, authorityKey, err := newCA(from, until)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "password-operator webhooks"},
		NotBefore:   from.Add(-clockSkew),
		NotAfter:    wholeSecond(until),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	// Only these alternative names count. The common name above is for people.
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	bundle, err := cert.EncodeCertificates(authority)
	if err != nil {
		return nil, err
	}
	return &issued{ca: bundle, serving: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, from: from, until: until}, nil
}

// newCA makes a certificate that has signed itself, and may sign certificates of servers but of no further CAs.
func newCA(from, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		// The time tells two CAs in a bundle apart.
		Subject:               pkix.Name{CommonName: "password-operator CA of " + from.UTC().Format(time.RFC3339Nano)},
		NotBefore:             from.Add(-clockSkew),
		NotAfter:              wholeSecond(until),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return certificate, key, nil
}

// wholeSecond rounds up, for certificates count in seconds.
func wholeSecond(moment time.Time) time.Time {
	return moment.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}
