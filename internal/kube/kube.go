// Package kube uses package net/http to send requests to an API server. kubectl would need a process for each request,
// and with client-go, the first build of the workshop's command would take five times as long.
package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"sigs.k8s.io/yaml"
)

// Get sends a GET request for a path of the API server, and returns the answer's body.
type Get func(ctx context.Context, path string) ([]byte, error)

// Client sends requests to one API server.
type Client struct {
	// Server is the URL of the API server.
	Server string
	http   *http.Client
}

// kubeconfig has the fields that Open understands. Source: package k8s.io/client-go/tools/clientcmd/api/v1.
type kubeconfig struct {
	APIVersion     string   `json:"apiVersion"`
	Kind           string   `json:"kind"`
	Preferences    struct{} `json:"preferences"`
	CurrentContext string   `json:"current-context"`
	Contexts       []any    `json:"contexts"`
	Clusters       []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server string `json:"server"`
			CAData []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			CertificateData []byte `json:"client-certificate-data"`
			KeyData         []byte `json:"client-key-data"`
		} `json:"user"`
	} `json:"users"`
}

// Open reads a kubeconfig with one cluster, one user and their certificates, such as one written by the embedded
// cluster or by kind. It fails for any other kubeconfig, for example one with a token or an exec plugin, which needs
// kubectl.
func Open(path string) (*Client, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config kubeconfig
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return nil, fmt.Errorf("%s is not like a kubeconfig that the workshop writes: %w", path, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, fmt.Errorf("%s is not like a kubeconfig that the workshop writes: it must have one cluster and one user, but has %d and %d", path, len(config.Clusters), len(config.Users))
	}
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	pair, err := tls.X509KeyPair(user.CertificateData, user.KeyData)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate in %s: %w", path, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(cluster.CAData) {
		return nil, fmt.Errorf("%s has no certificate authority", path)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	return &Client{Server: cluster.Server, http: &http.Client{Transport: transport}}, nil
}

// Get sends a GET request for a path of the API server, and returns the answer's body. If the API server rejects the
// request, the error contains the server's message or, if there is none, the status.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		if json.Unmarshal(body, &refusal) == nil && refusal.Message != "" {
			return nil, errors.New(refusal.Message)
		}
		return nil, fmt.Errorf("the API server answers %s with %s", path, response.Status)
	}
	return body, nil
}

// JSON sends a GET request for a path and decodes the answer.
func (get Get) JSON(ctx context.Context, path string, into any) error {
	body, err := get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the API server's answer to %s: %w", path, err)
	}
	return nil
}
