package manager_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/manager"
	"example.com/operator-workshop/manager/managertest"
)

// forManager returns a manager's options after a change to the defaults.
func forManager(t *testing.T, change func(*manager.Options)) ctrl.Options {
	options := manager.Default()
	change(&options)
	return options.ForManager(t.Context(), ctrl.Options{})
}

func TestForManagerKeepsTheCallersOptions(t *testing.T) {
	g := NewWithT(t)
	setup := ctrl.Options{
		Scheme:           runtime.NewScheme(),
		LeaderElectionID: "guestbook.my.domain",
		Cache:            cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}}},
		WebhookServer:    webhook.NewServer(webhook.Options{}),
	}
	options := manager.Default()
	made := options.ForManager(t.Context(), setup)
	g.Expect(made.Scheme).To(BeIdenticalTo(setup.Scheme))
	g.Expect(made.LeaderElectionID).To(Equal(setup.LeaderElectionID))
	g.Expect(made.Cache.ByObject).To(Equal(setup.Cache.ByObject))
	g.Expect(made.WebhookServer).To(BeIdenticalTo(setup.WebhookServer))
}

func TestForManagerMakesACacheThatEndsWithTheProcess(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	options := manager.Default()
	made, err := options.ForManager(ctx, ctrl.Options{}).NewCache(&rest.Config{}, cache.Options{Mapper: meta.NewDefaultRESTMapper(nil)})
	g.Expect(err).NotTo(HaveOccurred())
	cancel()
	waiting, giveUp := context.WithTimeout(t.Context(), managertest.Timeout)
	defer giveUp()
	g.Expect(made.WaitForCacheSync(waiting)).To(BeTrue(), "nothing may wait for a cache once the process is told to end, see cache.go")
}

func TestForManagerNamespaces(t *testing.T) {
	tests := map[string]struct {
		namespaces []string
		// waits means that reads wait for the manager's own writes, which controller-runtime can't do with several
		// namespaces.
		waits bool
	}{
		"all namespaces":     {waits: true},
		"one namespace":      {namespaces: []string{"shop"}, waits: true},
		"several namespaces": {namespaces: []string{"shop", "bank"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made := forManager(t, func(options *manager.Options) { options.Namespaces = test.namespaces })
			g.Expect(made.Cache.DefaultNamespaces).To(HaveLen(len(test.namespaces)), "see cachedNamespaces in manager.go")
			for _, namespace := range test.namespaces {
				g.Expect(made.Cache.DefaultNamespaces).To(HaveKey(namespace))
			}
			g.Expect(made.Client.Cache.EnableReadYourWritesConsistency).To(HaveValue(Equal(test.waits)))
		})
	}
}

func TestForManagerLeaderElection(t *testing.T) {
	g := NewWithT(t)
	g.Expect(forManager(t, func(*manager.Options) {}).LeaderElection).To(BeFalse())
	made := forManager(t, func(options *manager.Options) { options.LeaderElect, options.LeaderElectionNamespace = true, "shop" })
	g.Expect(made.LeaderElection).To(BeTrue())
	g.Expect(made.LeaderElectionNamespace).To(Equal("shop"))
	g.Expect(made.LeaderElectionReleaseOnCancel).To(BeTrue(), "another replica must not have to wait for the Lease to expire")
	g.Expect(made.Controller.EnableWarmup).To(HaveValue(BeTrue()), "a standby must fill its caches in advance")
}

func TestForManagerOtherOptions(t *testing.T) {
	g := NewWithT(t)
	made := forManager(t, func(options *manager.Options) {
		options.MaxConcurrentReconciles, options.ResyncPeriod, options.HealthProbeBindAddress = 7, time.Hour, ":8081"
	})
	g.Expect(made.Controller.MaxConcurrentReconciles).To(Equal(7))
	g.Expect(made.Cache.SyncPeriod).To(HaveValue(Equal(time.Hour)))
	g.Expect(made.HealthProbeBindAddress).To(Equal(":8081"))
	g.Expect(made.Cache.DefaultTransform).NotTo(BeNil())
	g.Expect(made.GracefulShutdownTimeout).To(HaveValue(BeNumerically(">", 15*time.Second)), "a reconcile that has begun may take reconcileTimeout")
}

func TestForManagerOffersHTTP2ToWebhooksOnlyIfAllowed(t *testing.T) {
	g := NewWithT(t)
	server := forManager(t, func(*manager.Options) {}).WebhookServer.(*webhook.DefaultServer)
	g.Expect(protocolsAfter(server.Options.TLSOpts)).To(Equal([]string{"http/1.1"}), "HTTP/2 must be off")
	server = forManager(t, func(options *manager.Options) { options.EnableHTTP2 = true }).WebhookServer.(*webhook.DefaultServer)
	g.Expect(server.Options.TLSOpts).To(BeEmpty(), "the server itself must offer HTTP/2")
}

// protocolsAfter returns the protocols that a server offers after the changes if it offered only HTTP/2 before them.
func protocolsAfter(changes []func(*tls.Config)) []string {
	config := &tls.Config{NextProtos: []string{"h2"}}
	for _, change := range changes {
		change(config)
	}
	return config.NextProtos
}

func TestForManagerMetrics(t *testing.T) {
	g := NewWithT(t)
	made := forManager(t, func(options *manager.Options) {
		options.Metrics.BindAddress, options.Metrics.CertPath = ":8443", "certs"
	}).Metrics
	g.Expect(made.BindAddress).To(Equal(":8443"))
	g.Expect(made.SecureServing).To(BeTrue())
	g.Expect(made.FilterProvider).NotTo(BeNil(), "only clients that the cluster authorizes may get metrics")
	g.Expect([]string{made.CertDir, made.CertName, made.KeyName}).To(Equal([]string{"certs", "tls.crt", "tls.key"}))
	g.Expect(protocolsAfter(made.TLSOpts)).To(Equal([]string{"http/1.1"}), "HTTP/2 must be off")

	made = forManager(t, func(options *manager.Options) { options.EnableHTTP2 = true }).Metrics
	g.Expect(made.TLSOpts).To(BeEmpty(), "the server itself must offer HTTP/2")
	made = forManager(t, func(options *manager.Options) { options.Metrics.Secure = false }).Metrics
	g.Expect(made.SecureServing).To(BeFalse())
	g.Expect(made.FilterProvider).To(BeNil(), "without TLS, a client must not have to send a token")
}
