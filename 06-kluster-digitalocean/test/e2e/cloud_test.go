//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

const (
	// cloudNamespace is where the emulator runs.
	cloudNamespace = "kluster-e2e-cloud"
	// cloudName is the emulator's host name in the operator's requests.
	cloudName = "do-emulator." + cloudNamespace + ".svc"
	// certificateValidity is how long the emulator's certificate stays valid: longer than any test takes.
	certificateValidity = 24 * time.Hour
)

// keyPair is a certificate and its key, both PEM-encoded.
type keyPair struct{ certificate, key string }

var cloudCertificate keyPair

// startCloud starts the emulator in the cluster, and removes it when the specs have ended.
func startCloud(ctx SpecContext) {
	image := os.Getenv("EMULATOR_IMG")
	Expect(image).NotTo(BeEmpty(), "start these tests with `make test-e2e`, which sets EMULATOR_IMG")
	DeferCleanup(func(ctx SpecContext) {
		incluster.Kubectl(ctx, "delete", "namespace", cloudNamespace, "--ignore-not-found")
	}, NodeTimeout(incluster.Timeout))
	incluster.Kubectl(ctx, "create", "namespace", cloudNamespace)
	cloudCertificate = newKeyPair()
	_, err := incluster.KubectlWith(ctx, cloudSecret(), "create", "--namespace="+cloudNamespace)
	Expect(err).NotTo(HaveOccurred())
	manifest, err := os.ReadFile("test/e2e/cloud.yaml")
	Expect(err).NotTo(HaveOccurred())
	_, err = incluster.KubectlWith(ctx, strings.ReplaceAll(string(manifest), "${EMULATOR_IMG}", image), "create", "--namespace="+cloudNamespace)
	Expect(err).NotTo(HaveOccurred())
	incluster.Kubectl(ctx, "rollout", "status", "deployment/do-emulator", "--namespace="+cloudNamespace, "--timeout=2m")
}

// cloudSecret returns a manifest of the Secret with the emulator's certificate and key. It is JSON, which is also valid
// YAML.
func cloudSecret() string {
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata":   map[string]string{"name": "do-emulator"},
		"stringData": map[string]string{"tls.crt": cloudCertificate.certificate, "tls.key": cloudCertificate.key},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(secret)
}

// newKeyPair makes a key, and a self-signed certificate for the emulator's host name.
func newKeyPair() keyPair {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{cloudName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certificateValidity),
		IsCA:         true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	return keyPair{certificate: inPEM("CERTIFICATE", certificate), key: inPEM("PRIVATE KEY", private)}
}

func inPEM(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// clusters returns the names of the clusters in the cloud.
func clusters(ctx context.Context) []string {
	GinkgoHelper()
	var answer struct {
		Clusters []struct{ Name string } `json:"kubernetes_clusters"`
	}
	askCloud(ctx, "/emulator/clusters", &answer)
	names := []string{}
	for _, cluster := range answer.Clusters {
		names = append(names, cluster.Name)
	}
	return names
}

// effective returns how often an operation on a cluster has taken effect, according to the cloud's journal.
func effective(ctx context.Context, operation, cluster string) int {
	GinkgoHelper()
	var answer struct {
		Journal []struct {
			Operation string
			Cluster   string `json:"cluster_name"`
			Effective bool
		}
	}
	askCloud(ctx, "/emulator/journal", &answer)
	count := 0
	for _, entry := range answer.Journal {
		if entry.Effective && entry.Operation == operation && entry.Cluster == cluster {
			count++
		}
	}
	return count
}

// askCloud queries one of the emulator's own endpoints through a forwarded port, because the emulator serves them only
// to requests for a loopback host.
func askCloud(ctx context.Context, path string, answer any) {
	GinkgoHelper()
	err := incluster.Forward(ctx, cloudNamespace, "service/do-emulator", "443", func(ctx context.Context, address string) error {
		status, body, err := incluster.Get(ctx, "https://"+address+path, "")
		if err != nil {
			return err
		}
		Expect(status).To(Equal(http.StatusOK), "the emulator's answer to GET %s: %s", path, body)
		return json.Unmarshal([]byte(body), answer)
	})
	Expect(err).NotTo(HaveOccurred())
}
