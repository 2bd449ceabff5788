package serving_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const day = 24 * time.Hour

// fault is a way in which a webhook server fails, and the reasons that the API server then
// reports. In the reasons, URL, PORT, TIME and UID replace text that differs each time.
type fault struct {
	// host is the host that the API server calls, by default 127.0.0.1. certified is the host in the certificate, by
	// default the same as host.
	host, certified string
	age             time.Duration // the age of the certificate, which is valid for a day
	otherCA         bool          // the API server trusts a CA other than the one that signed the certificate
	plain           bool          // the server doesn't speak TLS
	down            bool          // there is no server
	answer          http.HandlerFunc

	// admission and conversion are the reasons for a failed admission and a failed conversion. conversion is empty if
	// both reasons are the same.
	admission, conversion string
}

var faults = map[string]fault{
	"the certificate has expired": {
		age:       2 * day,
		admission: `Post "URL": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time TIME is after TIME`,
	},
	"another CA has signed the certificate": {
		otherCA:   true,
		admission: `Post "URL": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
	},
	"the certificate is for another name": {
		host: "localhost", certified: "webhook.example.com",
		admission: `Post "URL": tls: failed to verify certificate: x509: certificate is valid for webhook.example.com, not localhost`,
	},
	"the certificate is for a name, but the URL has an address": {
		certified: "webhook.example.com",
		admission: `Post "URL": tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs`,
	},
	"the server doesn't speak TLS": {
		plain:     true,
		admission: `Post "URL": http: server gave HTTP response to HTTPS client`,
	},
	"no server listens": {
		down:      true,
		admission: `Post "URL": dial tcp 127.0.0.1:PORT: connect: connection refused`,
	},
	"the answer comes too late": {
		answer:    hang,
		admission: `Post "URL": context deadline exceeded`,
	},
	"the server has no such path": {
		answer:    http.NotFound,
		admission: `the server could not find the requested resource`,
	},
	"the handler fails": {
		answer:    fail,
		admission: `an error on the server ("no more memory") has prevented the request from succeeding`,
	},
	"the answer isn't JSON": {
		answer: say("<html>It works!</html>"),
		admission: `couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type ` +
			`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`,
	},
	"the answer is empty": {
		answer:     say("{}"),
		admission:  `received invalid webhook response: webhook response was absent`,
		conversion: `expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=`,
	},
	"the answer is for another question": {
		answer:     answerAnother,
		admission:  `received invalid webhook response: expected response.uid="UID", got "another"`,
		conversion: `expected response.uid="UID", got "another"`,
	},
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) }
}

func fail(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "no more memory", http.StatusInternalServerError)
}

// hang does not answer until the API server has given up.
func hang(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }

func answerAnother(w http.ResponseWriter, request *http.Request) {
	review := map[string]any{}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	delete(review, "request")
	review["response"] = map[string]any{"uid": "another", "allowed": true, "result": map[string]any{"status": "Success"}}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// serve runs the server until the spec ends, unless down is set. It returns the URL and the CA bundle to register.
func (f fault) serve() (url string, bundle []byte) {
	GinkgoHelper()
	host := cmp.Or(f.host, "127.0.0.1")
	certificate, bundle := selfSigned(cmp.Or(f.certified, host), time.Now().Add(-f.age))
	if f.otherCA {
		_, bundle = selfSigned(host, time.Now())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	url = "https://" + net.JoinHostPort(host, port) + "/webhook"
	if f.down {
		Expect(listener.Close()).To(Succeed())
		return url, bundle
	}
	if !f.plain {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	server := &http.Server{Handler: f.answer, ReadHeaderTimeout: waitTimeout, ErrorLog: log.New(GinkgoWriter, "faulty server: ", 0)}
	go func() {
		defer GinkgoRecover()
		Expect(server.Serve(listener)).To(MatchError(http.ErrServerClosed))
	}()
	DeferCleanup(server.Close)
	return url, bundle
}

// selfSigned makes a certificate that is valid for a day, and the CA bundle with which a client trusts it.
func selfSigned(host string, from time.Time) (certificate tls.Certificate, bundle []byte) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: from.String()}, NotBefore: from.Add(-time.Minute), NotAfter: from.Add(day),
		BasicConstraintsValid: true, IsCA: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var variables = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`"https://[^"]+"`), `"URL"`},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[-+][0-9:]+)`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`/spec-[a-z0-9]+/`), "/NAMESPACE/"},
	{regexp.MustCompile(`revision=[0-9]+`), "revision=REVISION"},
	// There is only one timeout, but any of three places in net/http may notice it first, each with its own message.
	{regexp.MustCompile(`(net/http: request canceled|context deadline exceeded) \(Client\.Timeout exceeded while awaiting headers\)`), "context deadline exceeded"},
}

// normalise replaces text that differs from one call to the next.
func normalise(err error) string {
	if err == nil {
		return "no error"
	}
	text := err.Error()
	for _, variable := range variables {
		text = variable.pattern.ReplaceAllString(text, variable.replacement)
	}
	return strings.TrimSpace(text)
}
