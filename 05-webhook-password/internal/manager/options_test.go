package manager_test

import (
	"crypto/tls"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/05-webhook-password/internal/manager"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want func(*manager.Options)
		// wantErr is a part of the error; "" for none.
		wantErr string
	}{
		"no flags give the defaults": {want: func(*manager.Options) {}},
		"every flag has an effect": {
			args: []string{
				"--namespaces=shop,bank", "--max-concurrent-reconciles=7", "--resync-period=1h",
				"--leader-elect", "--leader-election-namespace=shop", "--health-probe-bind-address=:8081",
				"--metrics-bind-address=:8443", "--metrics-secure=false", "--metrics-cert-path=certs",
				"--metrics-cert-name=c.crt", "--metrics-cert-key=c.key", "--enable-http2",
				"--webhook-certs=files", "--webhook-bind-address=:9444", "--webhook-cert-path=hooks",
				"--webhook-cert-name=h.crt", "--webhook-cert-key=h.key", "--webhook-cert-validity=90m",
			},
			want: func(options *manager.Options) {
				*options = manager.Options{
					Namespaces: []string{"shop", "bank"}, MaxConcurrentReconciles: 7, ResyncPeriod: time.Hour,
					LeaderElect: true, LeaderElectionNamespace: "shop", HealthProbeBindAddress: ":8081", EnableHTTP2: true,
					Metrics: manager.MetricsOptions{BindAddress: ":8443", CertPath: "certs", CertName: "c.crt", KeyName: "c.key"},
					Webhooks: manager.WebhookOptions{
						Enabled: true, Certs: manager.CertsFiles, BindAddress: ":9444",
						CertPath: "hooks", CertName: "h.crt", KeyName: "h.key", Validity: 90 * time.Minute,
					},
				}
			},
		},
		"the last list of namespaces counts": {args: []string{"--namespaces=shop", "--namespaces=bank"}, want: func(options *manager.Options) { options.Namespaces = []string{"bank"} }},
		"a namespace in capitals is refused": {args: []string{"--namespaces=shop,Bank"}, wantErr: `"Bank" is no namespace`},
		"a namespace without a name is":      {args: []string{"--namespaces=shop,"}, wantErr: `"" is no namespace`},
		"a blank between namespaces is":      {args: []string{"--namespaces=shop, bank"}, wantErr: `" bank" is no namespace`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, want := manager.Default(), manager.Default()
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			flags.SetOutput(t.Output())
			options.AddFlags(flags)
			err := flags.Parse(test.args)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			test.want(&want)
			g.Expect(options).To(Equal(want), "see AddFlags in options.go and addFlags in webhooks.go")
		})
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*manager.Options)
		// want is the error; "" for none.
		want string
	}{
		"the defaults are valid":        {change: func(*manager.Options) {}},
		"somebody must work":            {change: func(options *manager.Options) { options.MaxConcurrentReconciles = 0 }, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"a resync takes time":           {change: func(options *manager.Options) { options.ResyncPeriod = -time.Second }, want: "--resync-period=-1s: give a positive duration"},
		"metrics may be in the clear":   {change: func(options *manager.Options) { options.Metrics.Secure = false }},
		"but without a certificate":     {change: func(options *manager.Options) { options.Metrics.Secure, options.Metrics.CertPath = false, "certs" }, want: "--metrics-cert-path is for TLS: leave --metrics-secure=false out"},
		"a certificate that is missing": {change: func(options *manager.Options) { options.Metrics.CertPath = "missing" }, want: "--metrics-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"webhooks that make no sense":   {change: func(options *manager.Options) { options.Webhooks.Certs = "borrowed" }, want: "--webhook-certs=borrowed: choose one of local, files, rotated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := manager.Default()
			test.change(&options)
			if test.want == "" {
				g.Expect(options.Validate()).To(Succeed())
				return
			}
			g.Expect(options.Validate()).To(MatchError(test.want))
		})
	}
}

func TestDefaultIsSafe(t *testing.T) {
	g := NewWithT(t)
	options := manager.Default()
	g.Expect(options.HealthProbeBindAddress).To(HavePrefix("127.0.0.1:"), "nothing listens outward unasked")
	g.Expect(options.Webhooks.BindAddress).To(HavePrefix("127.0.0.1:"))
	g.Expect(options.Metrics.BindAddress).To(Equal("0"))
	g.Expect(options.Metrics.Secure).To(BeTrue())
	g.Expect(options.EnableHTTP2).To(BeFalse())
	g.Expect(options.Webhooks.Enabled).To(BeTrue(), "who checks nothing says so")
}

// forManager are a manager's options after a change of the defaults.
func forManager(change func(*manager.Options)) ctrl.Options {
	options := manager.Default()
	change(&options)
	return options.ForManager(runtime.NewScheme())
}

func TestForManagerNamespaces(t *testing.T) {
	tests := map[string]struct {
		namespaces []string
		// waits tells whether reads wait for the manager's own writes, which controller-runtime can't do with several namespaces.
		waits bool
	}{
		"all namespaces":     {waits: true},
		"one namespace":      {namespaces: []string{"shop"}, waits: true},
		"several namespaces": {namespaces: []string{"shop", "bank"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made := forManager(func(options *manager.Options) { options.Namespaces = test.namespaces })
			g.Expect(made.Cache.DefaultNamespaces).To(HaveLen(len(test.namespaces)), "see cachedNamespaces in options.go")
			for _, namespace := range test.namespaces {
				g.Expect(made.Cache.DefaultNamespaces).To(HaveKey(namespace))
			}
			g.Expect(made.Client.Cache.EnableReadYourWritesConsistency).To(HaveValue(Equal(test.waits)))
		})
	}
}

func TestForManagerLeaderElection(t *testing.T) {
	g := NewWithT(t)
	g.Expect(forManager(func(*manager.Options) {}).LeaderElection).To(BeFalse())
	made := forManager(func(options *manager.Options) { options.LeaderElect, options.LeaderElectionNamespace = true, "shop" })
	g.Expect(made.LeaderElection).To(BeTrue())
	g.Expect(made.LeaderElectionID).To(Equal("password.example.com"))
	g.Expect(made.LeaderElectionNamespace).To(Equal("shop"))
	g.Expect(made.LeaderElectionReleaseOnCancel).To(BeTrue(), "another replica need not wait for the Lease to run out")
	g.Expect(made.Controller.EnableWarmup).To(HaveValue(BeTrue()), "a standby that first had to fill its caches would be late")
}

func TestForManagerRest(t *testing.T) {
	g := NewWithT(t)
	made := forManager(func(options *manager.Options) {
		options.ResyncPeriod, options.HealthProbeBindAddress = time.Hour, ":8081"
	})
	g.Expect(made.Cache.SyncPeriod).To(HaveValue(Equal(time.Hour)))
	g.Expect(made.HealthProbeBindAddress).To(Equal(":8081"))
	g.Expect(made.Cache.DefaultTransform).NotTo(BeNil())
	g.Expect(made.GracefulShutdownTimeout).To(HaveValue(BeNumerically(">", 15*time.Second)), "a reconcile that has begun may take reconcileTimeout")
	g.Expect(made.Cache.ByObject).To(HaveLen(1))
	for object, settings := range made.Cache.ByObject {
		g.Expect(object).To(BeAssignableToTypeOf(&corev1.Secret{}))
		g.Expect(settings.Label).NotTo(BeNil(), "Secrets of others stay out, see CacheByObject in internal/controller/watches.go")
	}
}

func TestForManagerMetrics(t *testing.T) {
	g := NewWithT(t)
	made := forManager(func(options *manager.Options) {
		options.Metrics.BindAddress, options.Metrics.CertPath = ":8443", "certs"
	}).Metrics
	g.Expect(made.BindAddress).To(Equal(":8443"))
	g.Expect(made.SecureServing).To(BeTrue())
	g.Expect(made.FilterProvider).NotTo(BeNil(), "metrics are for those whom the cluster allows")
	g.Expect([]string{made.CertDir, made.CertName, made.KeyName}).To(Equal([]string{"certs", "tls.crt", "tls.key"}))
	config := &tls.Config{NextProtos: []string{"h2"}}
	for _, change := range made.TLSOpts {
		change(config)
	}
	g.Expect(config.NextProtos).To(Equal([]string{"http/1.1"}), "HTTP/2 is off")

	made = forManager(func(options *manager.Options) { options.EnableHTTP2 = true }).Metrics
	g.Expect(made.TLSOpts).To(BeEmpty(), "HTTP/2 is what the server offers by itself")
	made = forManager(func(options *manager.Options) { options.Metrics.Secure = false }).Metrics
	g.Expect(made.SecureServing).To(BeFalse())
	g.Expect(made.FilterProvider).To(BeNil(), "a token must not be asked for in the clear")
}
