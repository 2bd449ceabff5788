package serving_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
	"example.com/operator-workshop/manager"
)

func TestReadEnvironment(t *testing.T) {
	tests := map[string]struct {
		value string
		want  bool
		// wantErr is the expected error, or "" if there must be none.
		wantErr string
	}{
		"nothing is set":   {want: true},
		"true":             {value: "true", want: true},
		"false":            {value: "false"},
		"a number":         {value: "0"},
		"no":               {value: "no", wantErr: "ENABLE_WEBHOOKS=no: must be true or false"},
		"a trailing space": {value: "false ", wantErr: "ENABLE_WEBHOOKS=false : must be true or false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, want := serving.Default(), serving.Default()
			want.Enabled = test.want
			want.Namespace = "shop"
			err := options.ReadEnvironment(func(variable string) string {
				return map[string]string{"ENABLE_WEBHOOKS": test.value, "POD_NAMESPACE": "shop"}[variable]
			})
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(test.wantErr))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(options).To(Equal(want), "see ReadEnvironment in options.go")
		})
	}
}

func TestDefaultIsSafe(t *testing.T) {
	g := NewWithT(t)
	options := serving.Default()
	g.Expect(options.BindAddress).To(HavePrefix("127.0.0.1:"), "by default, the server must not be reachable from outside")
	g.Expect(options.Enabled).To(BeTrue(), "webhooks must be on by default")
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	options := serving.Default()
	flags := flag.NewFlagSet("password-operator", flag.ContinueOnError)
	options.AddFlags(flags)
	g.Expect(flags.Parse(nil)).To(Succeed())
	g.Expect(options).To(Equal(serving.Default()), "without flags, the defaults should stay")

	g.Expect(flags.Parse([]string{
		"--webhook-certs=files", "--webhook-bind-address=:9444", "--webhook-cert-path=hooks",
		"--webhook-cert-name=h.crt", "--webhook-cert-key=h.key",
	})).To(Succeed())
	g.Expect(options).To(Equal(serving.Options{
		Enabled: true, Certs: serving.CertsFiles, BindAddress: ":9444",
		CertPath: "hooks", CertName: "h.crt", KeyName: "h.key",
	}), "each flag should set its option, see AddFlags in options.go")
}

// certificates returns a folder that contains empty files with these names.
func certificates(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, name), nil, 0o600)).To(Succeed())
	}
	return folder
}

func TestValidateWebhooks(t *testing.T) {
	complete, half := certificates(t, "tls.crt", "tls.key", "h.crt", "h.key"), certificates(t, "tls.crt")
	local := func(address string) serving.Options {
		return serving.Options{Enabled: true, Certs: serving.CertsLocal, BindAddress: address}
	}
	files := func(address, folder string) serving.Options {
		return serving.Options{Enabled: true, Certs: serving.CertsFiles, BindAddress: address, CertPath: folder, CertName: "tls.crt", KeyName: "tls.key", Namespace: "shop"}
	}
	changed := func(options serving.Options, change func(*serving.Options)) serving.Options {
		change(&options)
		return options
	}
	rotated := func(options *serving.Options) { options.Certs = serving.CertsRotated }
	const needLoopback = ": local webhooks need a loopback address, such as 127.0.0.1:9443"
	tests := map[string]struct {
		options serving.Options
		// want is the expected error, or "" if there must be none.
		want string
	}{
		"no webhooks":                         {options: serving.Options{Certs: "nonsense", BindAddress: "nonsense"}},
		"local":                               {options: local("127.0.0.1:9443")},
		"local, on an IPv6 address":           {options: local("[::1]:9443")},
		"local, on any loopback address":      {options: local("127.8.9.1:65535")},
		"local, on all IPv4 addresses":        {options: local("0.0.0.0:9443"), want: "--webhook-bind-address=0.0.0.0:9443" + needLoopback},
		"local, without a host":               {options: local(":9443"), want: "--webhook-bind-address=:9443" + needLoopback},
		"local, on another machine's address": {options: local("192.0.2.1:9443"), want: "--webhook-bind-address=192.0.2.1:9443" + needLoopback},
		"local, on a host name":               {options: local("localhost:9443"), want: "--webhook-bind-address=localhost:9443" + needLoopback},
		"local, without a port":               {options: local("127.0.0.1"), want: "--webhook-bind-address=127.0.0.1: set host and port, such as 127.0.0.1:9443"},
		"local, without an address":           {options: local(""), want: "--webhook-bind-address=: set host and port, such as 127.0.0.1:9443"},
		"local, on port 0":                    {options: local("127.0.0.1:0"), want: "--webhook-bind-address=127.0.0.1:0: the port must be a number from 1 to 65535"},
		"local, on a port that is too large":  {options: local("127.0.0.1:65536"), want: "--webhook-bind-address=127.0.0.1:65536: the port must be a number from 1 to 65535"},
		"local, on a named port":              {options: local("127.0.0.1:https"), want: "--webhook-bind-address=127.0.0.1:https: the port must be a number from 1 to 65535"},
		"local, with a certificate folder":    {options: changed(local("127.0.0.1:9443"), func(o *serving.Options) { o.CertPath = complete }), want: "--webhook-cert-path is for --webhook-certs=files and rotated: leave it out"},
		"from files":                          {options: files(":9443", complete)},
		"from files with other names":         {options: changed(files(":9443", complete), func(o *serving.Options) { o.CertName, o.KeyName = "h.crt", "h.key" })},
		"from files, without a port":          {options: files("0.0.0.0", complete), want: "--webhook-bind-address=0.0.0.0: set host and port, such as 127.0.0.1:9443"},
		"from files, without a folder":        {options: files(":9443", ""), want: "--webhook-certs=files: set the folder with --webhook-cert-path"},
		"from a missing folder":               {options: files(":9443", "missing"), want: "--webhook-cert-path=missing: stat missing/tls.crt: no such file or directory"},
		"from a folder without a key":         {options: files(":9443", half), want: "--webhook-cert-path=" + half + ": stat " + half + "/tls.key: no such file or directory"},
		"rotated, before the files exist":     {options: changed(files(":9443", "missing"), rotated)},
		"rotated, without a folder":           {options: changed(files(":9443", ""), rotated), want: "--webhook-certs=rotated: set the folder with --webhook-cert-path"},
		"rotated, outside a pod":              {options: changed(files(":9443", "missing"), func(o *serving.Options) { rotated(o); o.Namespace = "" }), want: "--webhook-certs=rotated: set POD_NAMESPACE to the namespace of the Secret webhook-server-cert"},
		"of an unknown kind":                  {options: changed(local("127.0.0.1:9443"), func(o *serving.Options) { o.Certs = "borrowed" }), want: "--webhook-certs=borrowed: choose one of local, files, rotated"},
		"of no kind":                          {options: changed(local("127.0.0.1:9443"), func(o *serving.Options) { o.Certs = "" }), want: "--webhook-certs=: choose one of local, files, rotated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := test.options
			if test.want == "" {
				g.Expect(options.Validate()).To(Succeed(), "see Validate in options.go")
				return
			}
			g.Expect(options.Validate()).To(MatchError(test.want), "see Validate in options.go")
		})
	}
}

func TestNewWebhooks(t *testing.T) {
	tests := map[string]struct {
		change func(*serving.Options)
		none   bool
	}{
		"switched off": {change: func(options *serving.Options) { options.Enabled = false }, none: true},
		"local":        {change: func(*serving.Options) {}},
		"from files":   {change: func(options *serving.Options) { options.Certs = serving.CertsFiles }},
		"rotated":      {change: func(options *serving.Options) { options.Certs = serving.CertsRotated }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, shared := serving.Default(), manager.Default()
			test.change(&options)
			webhooks, err := serving.NewWebhooks(options, shared.TLSOpts())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(webhooks.Server() == nil).To(Equal(test.none))
		})
	}
}
