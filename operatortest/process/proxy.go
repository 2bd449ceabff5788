package process

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// silent discards net/http's messages, because most are about connections that the kit breaks on purpose.
var silent = log.New(io.Discard, "", 0)

// identity is how the proxy identifies itself to its clients.
type identity struct {
	certificate tls.Certificate
	// authorities are the certificate authorities that a client trusts, in PEM.
	authorities []byte
}

// newIdentity creates one identity for all proxies of the process, because generating a key takes longer than everything
// else that the kit does to start an operator.
var newIdentity = sync.OnceValues(func() (identity, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback, nil, []string{"localhost"})
	if err != nil {
		return identity{}, fmt.Errorf("make a certificate for the operator's proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return identity{}, fmt.Errorf("read the certificate of the operator's proxy: %w", err)
	}
	return identity{certificate: pair, authorities: certificate}, nil
})

// proxy is the API server that one operator sees: it forwards each request that it doesn't refuse through the transport
// of a rest.Config.
type proxy struct {
	url, token string
	identity   identity
	forward    http.Handler
	server     *http.Server
	// cancel ends the requests in flight. Each of them holds inFlight's read lock.
	cancel   context.CancelFunc
	inFlight sync.RWMutex
}

func startProxy(config *rest.Config) (*proxy, error) {
	forward, err := newForwarder(config)
	if err != nil {
		return nil, err
	}
	shown, err := newIdentity()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the operator: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	started := &proxy{url: "https://" + listener.Addr().String(), token: rand.Text(), identity: shown, forward: forward, cancel: cancel}
	started.server = &http.Server{
		Handler:     started,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{shown.certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:    silent,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { _ = started.server.ServeTLS(listener, "", "") }() // it returns when the server is stopped
	return started, nil
}

// stop stops the server, cancels the requests in flight, and returns when they have ended.
func (p *proxy) stop() {
	p.cancel()
	_ = p.server.Close()
	p.inFlight.Lock()
	defer p.inFlight.Unlock()
}

// kubeconfig returns a kubeconfig that points to the proxy.
func (p *proxy) kubeconfig(namespace string) clientcmdapi.Config {
	const name = "operatortest"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.url, CertificateAuthorityData: p.identity.authorities}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: p.token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	return *config
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	p.inFlight.RLock()
	defer p.inFlight.RUnlock()
	query := request.URL.Query().Get("watch")
	switch {
	case request.Context().Err() != nil: // the proxy has been stopped, or the client is gone
	case !p.knows(request):
		refuse(writer, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "use the kubeconfig that the test kit gives to the operator")
	case namesUser(request.Header):
		refuse(writer, http.StatusForbidden, metav1.StatusReasonForbidden,
			"an operator under test can't impersonate a user: the test kit impersonates the operator's own user, and Kubernetes does not nest impersonation")
	case request.Header.Get("Upgrade") != "" && (query == "true" || query == "1"):
		refuse(writer, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the test kit can't read a watch over WebSocket: watch over HTTP")
	default:
		p.forward.ServeHTTP(writer, request)
	}
}

// knows reports whether the request has the token from the operator's kubeconfig.
func (p *proxy) knows(request *http.Request) bool {
	token, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	return found && subtle.ConstantTimeCompare([]byte(token), []byte(p.token)) == 1
}

// namesUser reports whether a field of the header is for impersonation, or for a user whom a proxy has authenticated.
// client-go would pass such fields on with the kit's credentials, which may impersonate anyone.
func namesUser(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			return true
		}
	}
	return false
}

func refuse(writer http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	writer.Header().Set("Content-Type", runtime.ContentTypeJSON)
	writer.WriteHeader(code)
	_ = json.NewEncoder(writer).Encode(metav1.Status{ // an error means that the client is gone
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}
