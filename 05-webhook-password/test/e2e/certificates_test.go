//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"example.com/operator-workshop/operatortest/incluster"
)

const certificateSecret = "webhook-server-cert"

// installCertManager installs cert-manager for the tests, unless the cluster already has it.
func installCertManager(ctx SpecContext) {
	found := incluster.Kubectl(ctx, "get", "crd", "certificates.cert-manager.io", "--ignore-not-found", "--output=name")
	if found != "" {
		return
	}
	operator := password("cert-manager")
	DeferCleanup(func(ctx SpecContext) { operator.Make(ctx, "remove-cert-manager") }, NodeTimeout(incluster.Timeout))
	operator.Make(ctx, "cert-manager")
}

// deleteCertificate deletes the Secret that cert-manager has filled.
func deleteCertificate(ctx context.Context) {
	GinkgoHelper()
	incluster.Kubectl(ctx, "delete", "secret", certificateSecret, "--namespace="+namespace)
}

// expireCertificate replaces the certificate in the Secret with one that expired a minute ago.
func expireCertificate(ctx context.Context) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"password-operator-webhook-service." + namespace + ".svc"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(-time.Minute),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	privateKey, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	incluster.Kubectl(ctx, "patch", "secret", certificateSecret, "--namespace="+namespace, "--type=merge",
		fmt.Sprintf(`--patch={"data":{"tls.crt":%q,"tls.key":%q}}`, inPEM("CERTIFICATE", certificate), inPEM("PRIVATE KEY", privateKey)))
}

// inPEM returns the content in PEM, encoded as in a Secret's data.
func inPEM(kind string, content []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// beRenewed matches a certificate that has not expired and is not the former one.
func beRenewed(former *x509.Certificate) types.GomegaMatcher {
	return And(
		Not(BeNil()),
		Not(Equal(former)),
		HaveField("NotAfter", BeTemporally(">", time.Now())),
	)
}

// storedCertificate returns the certificate in the Secret, or nil if it can't be read.
func storedCertificate(ctx context.Context) *x509.Certificate {
	content, err := incluster.TryKubectl(ctx, "get", "secret", certificateSecret, "--namespace="+namespace, `--output=go-template={{index .data "tls.crt" | base64decode}}`)
	if err != nil {
		return nil
	}
	block, _ := pem.Decode([]byte(content))
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}

// servedCertificate returns the certificate that the webhook server of a pod presents.
func servedCertificate(ctx context.Context, pod string) (certificate *x509.Certificate, err error) {
	err = incluster.Forward(ctx, namespace, "pod/"+pod, "9443", func(ctx context.Context, address string) error {
		// The test only looks at the certificate and sends nothing, so it need not trust the certificate.
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("connect to the webhook server: %w", err)
		}
		defer connection.Close()
		secured, ok := connection.(*tls.Conn)
		if !ok {
			return errors.New("the webhook server does not speak TLS")
		}
		certificate = secured.ConnectionState().PeerCertificates[0]
		return nil
	})
	return certificate, err
}
