package manager_test

import (
	"crypto/tls"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/manager"
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
			},
			want: func(options *manager.Options) {
				*options = manager.Options{
					Image:      options.Image,
					Namespaces: []string{"shop", "bank"}, MaxConcurrentReconciles: 7, ResyncPeriod: time.Hour,
					LeaderElect: true, LeaderElectionNamespace: "shop", HealthProbeBindAddress: ":8081",
					Metrics: manager.MetricsOptions{BindAddress: ":8443", CertPath: "certs", CertName: "c.crt", KeyName: "c.key", EnableHTTP2: true},
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
			g.Expect(options).To(Equal(want), "see AddFlags in options.go")
		})
	}
}

func TestReadEnvironment(t *testing.T) {
	tests := map[string]struct {
		environment map[string]string
		want        func(*manager.Options)
		// wantErr is a part of the error; "" for none.
		wantErr string
	}{
		"nothing is set":           {want: func(*manager.Options) {}},
		"all is empty":             {environment: map[string]string{"WATCH_NAMESPACE": "", "MEMCACHED_IMAGE": ""}, want: func(*manager.Options) {}},
		"one namespace":            {environment: map[string]string{"WATCH_NAMESPACE": "shop"}, want: func(options *manager.Options) { options.Namespaces = []string{"shop"} }},
		"several namespaces":       {environment: map[string]string{"WATCH_NAMESPACE": "shop,bank"}, want: func(options *manager.Options) { options.Namespaces = []string{"shop", "bank"} }},
		"no namespace in the list": {environment: map[string]string{"WATCH_NAMESPACE": "shop,"}, wantErr: `WATCH_NAMESPACE=shop,: "" is no namespace`},
		"an image":                 {environment: map[string]string{"MEMCACHED_IMAGE": "registry.test:5000/memcached@sha256:0"}, want: func(options *manager.Options) { options.Image = "registry.test:5000/memcached@sha256:0" }},
		"a space in the image":     {environment: map[string]string{"MEMCACHED_IMAGE": "memcached:1 "}, wantErr: "MEMCACHED_IMAGE=memcached:1 : the name of an image has no spaces"},
		"a tab in the image":       {environment: map[string]string{"MEMCACHED_IMAGE": "memcached\t:1"}, wantErr: "the name of an image has no spaces"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, want := manager.Default(), manager.Default()
			err := options.ReadEnvironment(func(variable string) string { return test.environment[variable] })
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			test.want(&want)
			g.Expect(options).To(Equal(want), "see ReadEnvironment in options.go")
		})
	}
}

func TestDefaultImage(t *testing.T) {
	NewWithT(t).Expect(manager.Default().Image).To(And(Equal(controller.DefaultImage), MatchRegexp(`:\d+\.\d+\.\d+`)), "a version, so that all pods run the same")
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
	g.Expect(options.Metrics.BindAddress).To(Equal("0"))
	g.Expect(options.Metrics.Secure).To(BeTrue())
	g.Expect(options.Metrics.EnableHTTP2).To(BeFalse())
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
	g.Expect(made.Cache.ByObject).To(HaveLen(1), "the cache keeps less of pods, see CacheByObject in internal/controller/watches.go")
	g.Expect(made.Cache.DefaultTransform).NotTo(BeNil())
	g.Expect(made.GracefulShutdownTimeout).To(HaveValue(BeNumerically(">", 15*time.Second)), "a reconcile that has begun may take reconcileTimeout")
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

	made = forManager(func(options *manager.Options) { options.Metrics.EnableHTTP2 = true }).Metrics
	g.Expect(made.TLSOpts).To(BeEmpty(), "HTTP/2 is what the server offers by itself")
	made = forManager(func(options *manager.Options) { options.Metrics.Secure = false }).Metrics
	g.Expect(made.SecureServing).To(BeFalse())
	g.Expect(made.FilterProvider).To(BeNil(), "a token must not be asked for in the clear")
}
