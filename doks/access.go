package doks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"
)

const (
	// defaultExpiry is how long credentials last if the request doesn't say, or says 0.
	defaultExpiry = 7 * 24 * time.Hour
	// longestExpiry is the longest lifetime that a request gets, because a time.Duration can't hold every number of
	// seconds. It is also how long the certificate authority of clusters without a control plane is valid.
	longestExpiry = 10 * 365 * 24 * time.Hour
)

// Access is what a client needs, besides the address, to administer a cluster.
type Access struct {
	// CertificateAuthority is PEM-encoded.
	CertificateAuthority []byte
	Token                string
	ExpiresAt            time.Time
}

// stubAccess hands out well-formed credentials for clusters without a control plane.
type stubAccess struct {
	authority []byte
}

// newStubAccess makes a real certificate authority, because clients refuse a kubeconfig with an invalid one.
func newStubAccess(now time.Time) (*stubAccess, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the stub clusters: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "emulated cluster CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(longestExpiry), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the stub clusters: %w", err)
	}
	return &stubAccess{authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content})}, nil
}

func (s *stubAccess) make(now time.Time, lifetime time.Duration) Access {
	return Access{CertificateAuthority: s.authority, Token: "stub-" + uuid.NewString(), ExpiresAt: now.Add(lifetime)}
}

// grantAccess replies with fresh credentials. A cluster has none before it has an endpoint, and none once its deletion
// has been requested.
func (e *Emulator) grantAccess(x *exchange, present func(*cluster, Access) reply) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil || found.Endpoint == "" || found.isBeingDeleted() {
		return notFound()
	}
	lifetime, ok := x.expiry()
	if !ok {
		return invalid("expiry_seconds must be a number of seconds, and not negative")
	}
	subject := *found // copied, because it is used after the clusters are unlocked
	if e.planes == nil {
		return present(&subject, e.stub.make(x.now, lifetime))
	}
	return reply{cluster: &subject, later: func(ctx context.Context) reply {
		granted, err := e.planes.Access(ctx, subject.ID, lifetime)
		if err != nil {
			e.options.Log.Error("Failed to make credentials", "cluster", subject.ID, "error", err.Error())
			return fail(http.StatusServiceUnavailable, "the cluster does not answer")
		}
		return present(&subject, granted)
	}}
}

// expiry reads how long the credentials should last.
func (x *exchange) expiry() (time.Duration, bool) {
	text := x.query.Get("expiry_seconds")
	if text == "" || text == "0" {
		return defaultExpiry, true
	}
	wanted, err := strconv.Atoi(text)
	if err != nil || wanted < 0 {
		return 0, false
	}
	return time.Duration(min(wanted, int(longestExpiry/time.Second))) * time.Second, true
}

func (e *Emulator) getCredentials(x *exchange) reply {
	return e.grantAccess(x, func(c *cluster, granted Access) reply {
		return reply{status: http.StatusOK, cluster: c, body: map[string]any{
			"server": c.Endpoint, "certificate_authority_data": granted.CertificateAuthority,
			"token": granted.Token, "expires_at": granted.ExpiresAt.UTC(),
		}}
	})
}

func (e *Emulator) getKubeconfig(x *exchange) reply {
	return e.grantAccess(x, func(c *cluster, granted Access) reply {
		content, err := c.kubeconfig(granted)
		if err != nil {
			return fail(http.StatusInternalServerError, "Unexpected server-side error")
		}
		return reply{status: http.StatusOK, cluster: c, raw: content}
	})
}

// kubeconfig returns a kubeconfig with the names that DigitalOcean uses.
func (c *cluster) kubeconfig(granted Access) ([]byte, error) {
	name := fmt.Sprintf("do-%s-%s", c.Region, c.Name)
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "preferences": map[string]any{}, "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{
			"certificate-authority-data": granted.CertificateAuthority, "server": c.Endpoint,
		}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name + "-admin"}}},
		"users":    []any{map[string]any{"name": name + "-admin", "user": map[string]any{"token": granted.Token}}},
	})
}

func (e *Emulator) getUser(x *exchange) reply {
	if e.account.find(x.ids["cluster"]) == nil {
		return notFound()
	}
	return reply{status: http.StatusOK, body: map[string]any{"kubernetes_cluster_user": map[string]any{
		"username": "learner@example.com", "groups": []string{"k8saas:authenticated"},
	}}}
}
