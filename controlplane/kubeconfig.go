package controlplane

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/internal/private"
)

// User is an identity that the API server authenticates by its client certificate.
type User struct {
	Name   string
	Groups []string
}

// Administrator may do everything: the API server authorizes every request from the group system:masters.
var Administrator = User{Name: "kubernetes-admin", Groups: []string{"system:masters"}}

// Kubeconfig makes a kubeconfig for a user, with a new key and certificate in it. It is valid until the certificate
// authority expires, ten years after it was made, or until RenewCertificates replaces the authority. server is the URL
// at which the user reaches the API server, for instance through a tunnel or under another host name. "" means the API
// server's own URL, https://127.0.0.1:PORT, which changes if Up has to choose another port.
func (c *ControlPlane) Kubeconfig(user User, server string) ([]byte, error) {
	found, err := c.load()
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(found, user, server)
}

func (c *ControlPlane) kubeconfig(r record, user User, server string) ([]byte, error) {
	if user.Name == "" {
		return nil, errors.New("make a kubeconfig: the user has no name")
	}
	keys := c.pki(r)
	certificate, key, err := keys.sign(authority, certutil.Config{
		CommonName: user.Name, Organization: user.Groups, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", user.Name, err)
	}
	root, err := os.ReadFile(keys.certificate(authority))
	if err != nil {
		return nil, err
	}
	cluster := kubeCluster{Server: server, CertificateAuthorityData: root}
	if server == "" {
		cluster.Server = url(r.Ports.APIServer, "")
	} else {
		// The API server's certificate may lack the URL's host, but always contains this name.
		cluster.TLSServerName = serviceName
	}
	config := kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: c.name(),
		Clusters: []namedCluster{{Name: c.name(), Cluster: cluster}},
		Contexts: []namedContext{{Name: c.name(), Context: kubeContext{Cluster: c.name(), User: user.Name}}},
		Users:    []namedUser{{Name: user.Name, User: credentials{ClientCertificateData: certificate, ClientKeyData: key}}},
	}
	return yaml.Marshal(config)
}

// kubeconfig contains the fields of a kubeconfig that are used here. Source: k8s.io/client-go/tools/clientcmd/api/v1;
// importing that package would add dozens of packages to the dependencies, such as apimachinery's runtime.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string      `json:"name"`
	Cluster kubeCluster `json:"cluster"`
}

type kubeCluster struct {
	Server                   string `json:"server"`
	TLSServerName            string `json:"tls-server-name,omitempty"`
	CertificateAuthorityData []byte `json:"certificate-authority-data"`
}

type namedContext struct {
	Name    string      `json:"name"`
	Context kubeContext `json:"context"`
}

type kubeContext struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

type namedUser struct {
	Name string      `json:"name"`
	User credentials `json:"user"`
}

type credentials struct {
	ClientCertificateData []byte `json:"client-certificate-data"`
	ClientKeyData         []byte `json:"client-key-data"`
}

// KubeconfigPath is the path of the administrator's kubeconfig. The first Up creates the file.
func (c *ControlPlane) KubeconfigPath() string { return filepath.Join(c.dir, "kubeconfig") }

// componentUsers maps each component that is a client of the API server to the user that it authenticates as. The
// components' kubeconfigs are stored beside the certificates.
var componentUsers = map[string]User{
	"kube-controller-manager": {Name: "system:kube-controller-manager"},
	"kube-scheduler":          {Name: "system:kube-scheduler"},
	// kwok acts as the kubelet of every node, which no default role allows.
	"kwok": {Name: "kwok", Groups: []string{"system:masters"}},
}

// writeKubeconfigs writes the kubeconfigs that are missing, and replaces those with an old port or an old certificate
// authority.
func (c *ControlPlane) writeKubeconfigs(r record) error {
	for component, user := range componentUsers {
		if err := c.writeKubeconfig(r, user, c.pki(r).path(component+".kubeconfig")); err != nil {
			return err
		}
	}
	return c.writeKubeconfig(r, Administrator, c.KubeconfigPath())
}

func (c *ControlPlane) writeKubeconfig(r record, user User, path string) error {
	root, err := os.ReadFile(c.pki(r).certificate(authority))
	if err != nil {
		return err
	}
	var current kubeconfig
	if content, err := os.ReadFile(path); err == nil && yaml.Unmarshal(content, &current) == nil && len(current.Clusters) == 1 {
		if cluster := current.Clusters[0].Cluster; cluster.Server == url(r.Ports.APIServer, "") && string(cluster.CertificateAuthorityData) == string(root) {
			return nil
		}
	}
	content, err := c.kubeconfig(r, user, "")
	if err != nil {
		return err
	}
	return private.WriteFile(path, content)
}
