package process

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// newForwarder returns a handler that sends requests through the configuration's transport. The handler removes the
// client's token, and asks for JSON.
func newForwarder(config *rest.Config) (http.Handler, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	transport, err := newTransports(config)
	if err != nil {
		return nil, fmt.Errorf("make a transport to the API server: %w", err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(server)
			request.Out.Header.Del("Authorization") // the transport has its own
			request.Out.Header.Del("Accept-Encoding")
			acceptJSON(request.Out.Header)
		},
		Transport:     transport,
		FlushInterval: -1, // flush immediately: a watch is a reply that takes minutes
		ErrorLog:      silent,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}, nil
}

// transports are the transports to the API server: upgrade is for requests that change the protocol, such as exec.
type transports struct{ plain, upgrade http.RoundTripper }

func newTransports(config *rest.Config) (transports, error) {
	plain, err := rest.TransportFor(config)
	if err != nil {
		return transports{}, err
	}
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	upgrade, err := rest.TransportFor(config)
	return transports{plain: plain, upgrade: upgrade}, err
}

// RoundTrip implements http.RoundTripper.
func (t transports) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Upgrade") != "" {
		return t.upgrade.RoundTrip(request)
	}
	return t.plain.RoundTrip(request)
}

// acceptJSON makes the Accept header ask for JSON in place of the other encodings of objects. Parameters stay: for instance,
// they ask for a Table. Encodings of anything else stay, too, such as OpenAPI's own protobuf.
func acceptJSON(header http.Header) {
	if len(header.Values("Accept")) == 0 {
		return // the API server's default is JSON
	}
	ranges := strings.Split(strings.Join(header.Values("Accept"), ","), ",")
	for i, accepted := range ranges {
		media, parameters, found := strings.Cut(accepted, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence, runtime.ContentTypeYAML:
			ranges[i] = runtime.ContentTypeJSON
			if found {
				ranges[i] += ";" + parameters
			}
		}
	}
	header.Set("Accept", strings.Join(ranges, ","))
}
