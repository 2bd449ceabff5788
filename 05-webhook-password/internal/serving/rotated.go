package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Rotated serves webhooks in the cluster with certificates that the library
// cert-controller makes. It keeps them in a Secret, which is mounted into the pod,
// and writes their CA into the webhook configurations and the CustomResourceDefinition.
type Rotated struct {
	// Secret holds the certificates. It must exist, empty to begin with: the library does not create it.
	Secret types.NamespacedName
	// CertDir is where the Secret is mounted, and CertName and KeyName its files.
	CertDir, CertName, KeyName string
	// DNSNames are the names of the Service by which the API server calls, one at least.
	DNSNames []string
	// Validating and Mutating are the names of the webhook configurations.
	Validating, Mutating string
}

// SetupWithManager makes the manager look after the certificates, and call setup,
// which registers the webhooks' handlers, once they are mounted. Not before:
// controller-runtime starts its webhook server as soon as anybody asks for it, and
// one that finds no files ends the process. Until the server listens, the manager is not ready.
func (r Rotated) SetupWithManager(mgr ctrl.Manager, setup func(ctrl.Manager) error) error {
	if len(r.DNSNames) == 0 {
		return errors.New("rotate certificates: they need a DNS name at least")
	}
	writer, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for the rotation of certificates: %w", err)
	}
	ready := make(chan struct{})
	if err := rotator.AddRotator(rotatorManager{Manager: mgr, writer: writer}, r.rotator(ready)); err != nil {
		return fmt.Errorf("add the rotation of certificates: %w", err)
	}
	late := &lateSetup{mgr: mgr, ready: ready, setup: setup}
	if err := mgr.AddReadyzCheck("webhooks", late.check); err != nil {
		return fmt.Errorf("add the readiness check of webhooks: %w", err)
	}
	if err := mgr.Add(late); err != nil {
		return fmt.Errorf("add the setup of webhooks: %w", err)
	}
	return nil
}

// rotatorManager gives the library a client of its own. The manager's client waits, before each read from the cache, until
// the cache shows what the client has written. It would wait for ever for the certificates' Secret, because the cache
// holds only the Secrets of Passwords, and every list of Secrets in the operator would fail.
type rotatorManager struct {
	ctrl.Manager
	writer client.Client
}

// GetClient implements manager.Manager.
func (m rotatorManager) GetClient() client.Client { return m.writer }

// rotator does its work in every replica. They write the same Secret, and the one
// that comes second finds it filled.
func (r Rotated) rotator(ready chan struct{}) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:      r.Secret,
		CertDir:        r.CertDir,
		CertName:       r.CertName,
		KeyName:        r.KeyName,
		CAName:         "password-operator-ca",
		CAOrganization: "password-operator",
		DNSName:        r.DNSNames[0],
		ExtraDNSNames:  r.DNSNames[1:],
		IsReady:        ready,
		FieldOwner:     "password-operator",
		// The CA is told to the API server when the certificate can be served, not before.
		EnableReadinessCheck: true,
		Webhooks: []rotator.WebhookInfo{
			{Name: r.Validating, Type: rotator.Validating},
			{Name: r.Mutating, Type: rotator.Mutating},
			{Name: Definition, Type: rotator.CRDConversion},
		},
	}
}

// lateSetup sets the webhooks up while the manager runs already.
type lateSetup struct {
	mgr   ctrl.Manager
	ready <-chan struct{}
	setup func(ctrl.Manager) error
	done  atomic.Bool
}

var (
	_ manager.Runnable               = (*lateSetup)(nil)
	_ manager.LeaderElectionRunnable = (*lateSetup)(nil)
)

// Start implements manager.Runnable.
func (s *lateSetup) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.ready:
	}
	if err := s.setup(s.mgr); err != nil {
		return err
	}
	s.done.Store(true)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves webhooks.
func (*lateSetup) NeedLeaderElection() bool { return false }

func (s *lateSetup) check(request *http.Request) error {
	if !s.done.Load() {
		return errors.New("the certificates of the webhooks are not there yet")
	}
	return s.mgr.GetWebhookServer().StartedChecker()(request)
}
