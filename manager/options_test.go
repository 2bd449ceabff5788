package manager_test

import (
	"flag"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/manager"
	"example.com/operator-workshop/manager/managertest"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want func(*manager.Options)
		// wantErr is part of the error. It is "" if there must be none.
		wantErr string
	}{
		"no flags give the defaults": {want: func(*manager.Options) {}},
		"each flag sets its option": {
			args: []string{
				"--namespaces=shop,bank", "--max-concurrent-reconciles=7", "--resync-period=1h",
				"--leader-elect", "--leader-election-namespace=shop", "--health-probe-bind-address=:8081",
				"--metrics-bind-address=:8443", "--metrics-secure=false", "--metrics-cert-path=certs",
				"--metrics-cert-name=c.crt", "--metrics-cert-key=c.key", "--enable-http2",
			},
			want: func(options *manager.Options) {
				*options = manager.Options{
					Namespaces: []string{"shop", "bank"}, MaxConcurrentReconciles: 7, ResyncPeriod: time.Hour,
					LeaderElect: true, LeaderElectionNamespace: "shop", HealthProbeBindAddress: ":8081", EnableHTTP2: true,
					Metrics: manager.MetricsOptions{BindAddress: ":8443", CertPath: "certs", CertName: "c.crt", KeyName: "c.key"},
					Logging: options.Logging,
				}
			},
		},
		"the last list of namespaces counts":  {args: []string{"--namespaces=shop", "--namespaces=bank"}, want: func(options *manager.Options) { options.Namespaces = []string{"bank"} }},
		"a namespace in capitals is rejected": {args: []string{"--namespaces=shop,Bank"}, wantErr: `"Bank" is not a namespace`},
		"an empty namespace is rejected":      {args: []string{"--namespaces=shop,"}, wantErr: `"" is not a namespace`},
		"a space after a comma is rejected":   {args: []string{"--namespaces=shop, bank"}, wantErr: `" bank" is not a namespace`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, want := manager.Default(), manager.Default()
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			flags.SetOutput(t.Output())
			options.AddFlags(flags, "Guestbooks")
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

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*manager.Options)
		// want is the error. It is "" if there must be none.
		want string
	}{
		"the defaults are valid":        {change: func(*manager.Options) {}},
		"no worker":                     {change: func(options *manager.Options) { options.MaxConcurrentReconciles = 0 }, want: "--max-concurrent-reconciles=0: at least 1 is needed"},
		"a negative resync period":      {change: func(options *manager.Options) { options.ResyncPeriod = -time.Second }, want: "--resync-period=-1s: give a positive duration"},
		"metrics without TLS are valid": {change: func(options *manager.Options) { options.Metrics.Secure = false }},
		"a certificate without TLS":     {change: func(options *manager.Options) { options.Metrics.Secure, options.Metrics.CertPath = false, "certs" }, want: "--metrics-cert-path is for TLS: remove --metrics-secure=false"},
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
	g.Expect(options.HealthProbeBindAddress).To(HavePrefix("127.0.0.1:"), "by default, only this machine may be able to reach the probes")
	g.Expect(options.Metrics.BindAddress).To(Equal("0"))
	g.Expect(options.Metrics.Secure).To(BeTrue())
	g.Expect(options.EnableHTTP2).To(BeFalse())
}

func TestCheckAddresses(t *testing.T) {
	occupied := managertest.OccupiedAddress(t)
	tests := map[string]struct {
		change func(*manager.Options)
		// want is the error. It is "" if there must be none.
		want string
	}{
		"no server":               {change: func(options *manager.Options) { options.HealthProbeBindAddress = "0" }},
		"an address that is free": {change: func(options *manager.Options) { options.HealthProbeBindAddress = managertest.FreeAddress(t) }},
		"the address of the probes is in use": {
			change: func(options *manager.Options) { options.HealthProbeBindAddress = occupied },
			want:   "--health-probe-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
		"the address of the metrics is in use": {
			change: func(options *manager.Options) {
				options.HealthProbeBindAddress, options.Metrics.BindAddress = "0", occupied
			},
			want: "--metrics-bind-address: listen tcp " + occupied + ": bind: address already in use; choose another address, or 0 for none",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := manager.Default()
			test.change(&options)
			if test.want == "" {
				g.Expect(options.CheckAddresses()).To(Succeed())
				return
			}
			g.Expect(options.CheckAddresses()).To(MatchError(test.want))
		})
	}
}
