package serving

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Rotated serves webhooks in the cluster with certificates that the library cert-controller makes and renews. The
// library keeps them in a Secret, which is mounted into the pods, and writes their CA into the webhook configurations
// and the CRD.
type Rotated struct {
	// Secret holds the certificates. It must exist, because the library does not create it, but it may be empty.
	Secret types.NamespacedName
	// CertDir is where the Secret is mounted, and CertName and KeyName are its files.
	CertDir, CertName, KeyName string
	// DNSNames are the names of the Service that the API server calls, at least one.
	DNSNames []string
}

// SetupWithManager makes the manager maintain the certificates. Once they are mounted, and the library has written
// their CA into the webhook configurations and the CRD, the manager calls register, which registers the handlers of the
// webhooks. It must not call register before the certificates are mounted: register starts the webhook server, and a
// server that finds no certificate ends the process.
func (r Rotated) SetupWithManager(mgr ctrl.Manager, server ctrlwebhook.Server, register func(ctrl.Manager) error) error {
	writer, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client to rotate certificates: %w", err)
	}
	mounted := make(chan struct{})
	if err := rotator.AddRotator(rotatorManager{Manager: mgr, writer: writer}, r.rotator(mounted)); err != nil {
		return fmt.Errorf("add the rotation of certificates: %w", err)
	}
	return errors.Join(mgr.AddReadyzCheck("webhooks", server.StartedChecker()), mgr.Add(onEveryReplica(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-mounted:
			return register(mgr)
		}
	})))
}

// rotator returns the library's rotator, which runs in every replica. The first replica fills the Secret, and the
// others use its certificates.
func (r Rotated) rotator(mounted chan struct{}) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:      r.Secret,
		CertDir:        r.CertDir,
		CertName:       r.CertName,
		KeyName:        r.KeyName,
		CAName:         "password-operator-ca",
		CAOrganization: "password-operator",
		DNSName:        r.DNSNames[0],
		ExtraDNSNames:  r.DNSNames[1:],
		IsReady:        mounted,
		FieldOwner:     "password-operator",
		// Write the CA into the webhook configurations and the CRD only after the certificate is mounted.
		EnableReadinessCheck: true,
		Webhooks: []rotator.WebhookInfo{
			{Name: "password-operator-validating-webhook-configuration", Type: rotator.Validating},
			{Name: "password-operator-mutating-webhook-configuration", Type: rotator.Mutating},
			{Name: crdName, Type: rotator.CRDConversion},
		},
	}
}

// rotatorManager gives the library a separate client. If the manager's client wrote the Secret of the certificates, its
// next list of Secrets would wait until the cache had seen that write. It would wait in vain, because the cache holds
// only the Secrets of Passwords.
type rotatorManager struct {
	ctrl.Manager
	writer client.Client
}

// GetClient implements manager.Manager.
func (m rotatorManager) GetClient() client.Client { return m.writer }

// onEveryReplica runs without leader election, because every replica serves webhooks.
type onEveryReplica func(context.Context) error

var (
	_ manager.Runnable               = onEveryReplica(nil)
	_ manager.LeaderElectionRunnable = onEveryReplica(nil)
)

// Start implements manager.Runnable.
func (f onEveryReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (onEveryReplica) NeedLeaderElection() bool { return false }
