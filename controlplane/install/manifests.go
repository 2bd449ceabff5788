package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/internal/private"
)

// Manifests are an operator's CRDs and webhooks. Fill in the first group of fields, then call Install or InstallShared.
type Manifests struct {
	// CRDs are files and folders with CustomResourceDefinitions. A missing path is an error.
	CRDs []string
	// Webhooks are files and folders with webhook configurations. A reference to a Service in them is replaced with the
	// address in Serving: the webhook server runs in this process or beside it, not in a pod.
	Webhooks []string
	// Scheme decides which definitions get a conversion webhook: those whose types convert through a hub. If it
	// is nil, client-go's scheme applies, which has no such types.
	Scheme *runtime.Scheme
	// Converts means that the webhook server also converts objects of kinds that aren't in Scheme, at the path that their
	// definition names.
	Converts bool
	// OnCreate, if it is not nil, is called before each object is created, for example to note what to delete later.
	OnCreate func(client.Object)

	// Definitions are the CustomResourceDefinitions in CRDs. Read, Install and InstallShared set this field.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Serving says where the webhook server must listen, and with which certificate. Installing the manifests sets it.
	Serving Serving
}

// Serving is the address and the certificate of a webhook server.
type Serving struct {
	Host string
	// Port was free when the manifests were installed.
	Port int
	// CertDir is the folder with tls.crt and tls.key.
	CertDir string
}

// Install is for the field Install of controlplane.Options. If an earlier attempt was interrupted, it replaces what that
// attempt installed.
func (m *Manifests) Install(ctx context.Context, plane *controlplane.ControlPlane) error {
	config, err := Config(plane)
	if err != nil {
		return err
	}
	return m.install(ctx, config, plane.Dir(), false)
}

// InstallShared installs the manifests in a cluster that others use, too. It leaves the conversion webhook of an
// existing definition alone, because the cluster's own operator converts its objects. If one of the webhook
// configurations already exists, it returns an error, because the cluster's own operator would no longer receive the
// requests for that configuration's webhooks. The webhook server's certificate is stored below dir.
func (m *Manifests) InstallShared(ctx context.Context, config *rest.Config, dir string) error {
	return m.install(ctx, config, dir, true)
}

// Read reads the definitions in CRDs, and installs nothing.
func (m *Manifests) Read() error {
	definitions := envtest.CRDInstallOptions{Paths: m.CRDs, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&definitions); err != nil {
		return fmt.Errorf("read the definitions in %v: %w", m.CRDs, err)
	}
	m.Definitions = definitions.CRDs
	if len(m.CRDs) > 0 && len(m.Definitions) == 0 {
		return fmt.Errorf("%v contains no CustomResourceDefinition", m.CRDs)
	}
	return nil
}

func (m *Manifests) install(ctx context.Context, config *rest.Config, dir string, shared bool) error {
	if err := m.Read(); err != nil {
		return err
	}
	webhooks, err := m.prepareWebhooks(dir)
	if err != nil {
		return fmt.Errorf("read the webhooks in %v: %w", m.Webhooks, err)
	}
	cluster, err := client.New(config, client.Options{}) // envtest adds the definitions' type to client-go's scheme
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if shared {
		if err := requireNew(ctx, cluster, webhooks); err != nil {
			return err
		}
	}
	if err := m.installDefinitions(ctx, cluster, config, webhooks, shared); err != nil {
		return err
	}
	for _, each := range configurations(webhooks) {
		m.creating(each)
	}
	if err := webhooks.Install(config); err != nil {
		return fmt.Errorf("install the webhooks: %w", err)
	}
	return nil
}

// prepareWebhooks reads the webhooks, chooses a port, and makes the server's certificate. It copies the certificate and
// its key to private files, because the group can read those that envtest writes.
func (m *Manifests) prepareWebhooks(dir string) (webhooks envtest.WebhookInstallOptions, err error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return webhooks, err
	}
	webhooks = envtest.WebhookInstallOptions{Paths: m.Webhooks, LocalServingHost: "127.0.0.1", LocalServingPort: port}
	defer func() { err = errors.Join(err, webhooks.Cleanup()) }()
	if err := webhooks.PrepWithoutInstalling(); err != nil {
		return webhooks, err
	}
	m.Serving = Serving{
		Host: webhooks.LocalServingHost, Port: webhooks.LocalServingPort, CertDir: filepath.Join(dir, "webhook-certificates"),
	}
	if err := private.MakeDir(m.Serving.CertDir); err != nil {
		return webhooks, err
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		content, err := os.ReadFile(filepath.Join(webhooks.LocalServingCertDir, name))
		if err == nil {
			err = private.WriteFile(filepath.Join(m.Serving.CertDir, name), content)
		}
		if err != nil {
			return webhooks, err
		}
	}
	return webhooks, nil
}

// requireNew returns an error if the cluster already has one of the webhook configurations: envtest would redirect its
// webhooks to the address in Serving.
func requireNew(ctx context.Context, cluster client.Client, webhooks envtest.WebhookInstallOptions) error {
	for _, each := range configurations(webhooks) {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(each), each.DeepCopyObject().(client.Object))
		if err == nil {
			return fmt.Errorf("the cluster already has webhooks named %s, whose requests would come to this process instead: stop their operator, or delete them", each.GetName())
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for the webhooks %s: %w", each.GetName(), err)
		}
	}
	return nil
}

func configurations(webhooks envtest.WebhookInstallOptions) []client.Object {
	var all []client.Object
	for _, each := range webhooks.MutatingWebhooks {
		all = append(all, each)
	}
	for _, each := range webhooks.ValidatingWebhooks {
		all = append(all, each)
	}
	return all
}

func (m *Manifests) creating(object client.Object) {
	if m.OnCreate != nil {
		m.OnCreate(object)
	}
}
