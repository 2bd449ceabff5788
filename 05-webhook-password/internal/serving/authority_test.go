package serving_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
)

const day = 24 * time.Hour

// noon is when the certificates of a test with a clock of its own are made.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// hello makes a TLS connection to a server that shows the authority's certificate,
// as an API server does at that time that knows the bundle.
func hello(authority *serving.Authority, host string, bundle []byte, now time.Time) error {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: authority.GetCertificate})
	if err != nil {
		return err
	}
	defer listener.Close()
	go answerOne(listener)

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	connection, err := tls.DialWithDialer(dialer, "tcp", listener.Addr().String(),
		&tls.Config{ServerName: host, RootCAs: roots, Time: func() time.Time { return now }})
	if err != nil {
		return err
	}
	return connection.Close()
}

// answerOne greets one client. What the client thinks of the certificate is its own result.
func answerOne(listener net.Listener) {
	connection, err := listener.Accept()
	if err != nil {
		return
	}
	defer connection.Close()
	_ = connection.(*tls.Conn).Handshake()
}

func newAuthority(g Gomega, host string, clock *testingclock.FakePassiveClock) *serving.Authority {
	authority, err := serving.NewAuthority(host, day, clock)
	g.Expect(err).NotTo(HaveOccurred())
	return authority
}

func TestACertificateIsForItsHostAndItsTime(t *testing.T) {
	cases := map[string]struct {
		host    string // the certificate is for
		called  string
		at      time.Time
		problem string
	}{
		"an IP address":                        {host: "127.0.0.1", called: "127.0.0.1", at: noon},
		"an IP address of version 6":           {host: "::1", called: "::1", at: noon},
		"a host name":                          {host: "localhost", called: "localhost", at: noon},
		"the clock of the caller is behind":    {host: "localhost", called: "localhost", at: noon.Add(-time.Minute)},
		"the last moment":                      {host: "localhost", called: "localhost", at: noon.Add(day)},
		"before its time":                      {host: "localhost", called: "localhost", at: noon.Add(-2 * time.Minute), problem: "not yet valid"},
		"after its time":                       {host: "localhost", called: "localhost", at: noon.Add(day + time.Second), problem: "certificate has expired"},
		"another IP address":                   {host: "127.0.0.1", called: "127.0.0.2", at: noon, problem: "valid for 127.0.0.1, not 127.0.0.2"},
		"another name":                         {host: "localhost", called: "example.com", at: noon, problem: "valid for localhost, not example.com"},
		"a name, but the certificate's is IPs": {host: "127.0.0.1", called: "localhost", at: noon, problem: "not valid for any names"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			authority := newAuthority(g, test.host, testingclock.NewFakePassiveClock(noon))
			err := hello(authority, test.called, authority.Bundle(), test.at)
			if test.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.problem)))
		})
	}
}

func TestACertificateMayDoNoMoreThanItMust(t *testing.T) {
	g := NewWithT(t)
	authority := newAuthority(g, "127.0.0.1", testingclock.NewFakePassiveClock(noon))

	authorities, err := cert.ParseCertsPEM(authority.Bundle())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(authorities).To(HaveLen(1), "one CA but during a rotation")
	ca := authorities[0]
	g.Expect(ca.IsCA && ca.BasicConstraintsValid).To(BeTrue(), "the CA must be marked as one")
	g.Expect(ca.MaxPathLen == 0 && ca.MaxPathLenZero).To(BeTrue(), "the CA must not sign further CAs")
	g.Expect(ca.KeyUsage).To(Equal(x509.KeyUsageCertSign))
	g.Expect(ca.PublicKey.(*ecdsa.PublicKey).Curve).To(Equal(elliptic.P256()))

	shown, err := authority.GetCertificate(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shown.Certificate).To(HaveLen(1), "the CA is known to the API server, so it is not shown")
	certificate, err := x509.ParseCertificate(shown.Certificate[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certificate.IsCA).To(BeFalse())
	g.Expect(certificate.NotAfter).To(Equal(noon.Add(day)))
	g.Expect(ca.NotAfter).To(Equal(noon.Add(day)))
	g.Expect(certificate.KeyUsage).To(Equal(x509.KeyUsageDigitalSignature))
	g.Expect(certificate.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}), "the certificate is a server's")
	g.Expect(certificate.IPAddresses).To(HaveLen(1))
	g.Expect(certificate.DNSNames).To(BeEmpty())
	g.Expect(certificate.PublicKey.(*ecdsa.PublicKey).Curve).To(Equal(elliptic.P256()))
}

// The bundles that an API server may know at a step of a rotation: the present one,
// and the one of the step before, as long as it has not heard of the change.
func TestARotationKeepsEveryStepWorking(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(noon)
	authority := newAuthority(g, "127.0.0.1", clock)
	expectTrust := func(step string, bundles ...[]byte) {
		t.Helper()
		for _, bundle := range bundles {
			g.Expect(hello(authority, "127.0.0.1", bundle, clock.Now())).To(Succeed(), step)
		}
	}
	advance := func(known bool) []byte {
		g.Expect(authority.Advance(known)).To(Succeed())
		return authority.Bundle()
	}

	old := authority.Bundle()
	clock.SetTime(noon.Add(day*2/3 - time.Second))
	g.Expect(advance(true)).To(Equal(old), "nothing is due in the first two thirds of the validity")

	clock.SetTime(noon.Add(day * 2 / 3))
	both := advance(true)
	g.Expect(both).To(HavePrefix(string(old)), "the old CA stays in the bundle")
	g.Expect(len(both)).To(BeNumerically(">", len(old)), "the new CA joins the bundle")
	expectTrust("the new CA has been announced", old, both)

	g.Expect(advance(true)).To(Equal(both), "who is working on a request may still go by the old bundle")
	clock.SetTime(noon.Add(day * 5 / 6))
	g.Expect(advance(false)).To(Equal(both), "nothing more happens before the bundle is registered everywhere")
	expectTrust("not everybody knows the new CA", old, both)

	renewed := advance(true)
	g.Expect(string(both)).To(HaveSuffix(string(renewed)), "the old CA leaves the bundle")
	expectTrust("the new certificate is served", both, renewed)
	g.Expect(hello(authority, "127.0.0.1", old, clock.Now())).To(MatchError(ContainSubstring("unknown authority")),
		"who knows the old CA only is shown the new certificate by now")

	clock.SetTime(noon.Add(day + time.Minute))
	g.Expect(advance(true)).To(Equal(renewed), "the next rotation is due by the new certificate's time")
	expectTrust("the old certificate would have expired", renewed)
}

func TestACertificateThatHasExpiredIsReplacedAtOnce(t *testing.T) {
	cases := map[string]struct{ rotating bool }{
		"no rotation had begun":                       {},
		"the successor of a rotation has expired too": {rotating: true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := testingclock.NewFakePassiveClock(noon)
			authority := newAuthority(g, "127.0.0.1", clock)
			if test.rotating {
				clock.SetTime(noon.Add(day * 3 / 4))
				g.Expect(authority.Advance(true)).To(Succeed())
			}
			before := authority.Bundle()

			clock.SetTime(noon.Add(3 * day))
			g.Expect(authority.Advance(false)).To(Succeed())
			g.Expect(authority.Bundle()).NotTo(ContainSubstring(string(before)), "a CA that has expired is of no use")
			g.Expect(hello(authority, "127.0.0.1", authority.Bundle(), clock.Now())).To(Succeed())
		})
	}
}

func TestASuccessorIsServedAtOnceWhenItsPredecessorHasExpired(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(noon)
	authority := newAuthority(g, "127.0.0.1", clock)
	clock.SetTime(noon.Add(day - time.Second))
	g.Expect(authority.Advance(true)).To(Succeed())
	announced := authority.Bundle()

	clock.SetTime(noon.Add(day))
	g.Expect(authority.Advance(false)).To(Succeed())
	g.Expect(hello(authority, "127.0.0.1", announced, clock.Now().Add(time.Second))).To(Succeed(), "some know the successor already")
}
