// Package testcluster starts a real control plane for the tests of one process.
//
// [Cluster.Start] runs etcd and kube-apiserver, and beside them kube-controller-manager, kube-scheduler and kwok. So a
// namespace that is deleted really goes away, owner references are garbage-collected and Deployments become available on a
// few simulated nodes; with envtest alone none of this happens. Service accounts work as on any cluster too: a pod gets the
// one of its namespace, and a token made for it is valid.
//
// The programs come from the folder that KUBEBUILDER_ASSETS names, else from bin/ in the root of the workshop's repository.
// Everything listens on 127.0.0.1 on free ports, keeps its files in one temporary folder and is ended by [Cluster.Stop]. If
// the test process is killed instead, a watchdog ends it.
//
// A pod that is bound to a node becomes ready at once, with whatever image. [Cluster.Stages] adds rules for pods that must
// behave in other ways.
//
// Custom resource definitions given in [Cluster.CRDs] are installed before the controller manager starts, so that its garbage
// collector knows them at once. It learns of a definition that is installed later within about 30 seconds; until then it
// does not collect the children of such objects.
//
// With USE_EXISTING_CLUSTER=true nothing is started. The tests run on the cluster that KUBECONFIG names; [Cluster.Stop]
// removes the definitions and webhooks that [Cluster.Start] created there. Definitions that were there before stay, and
// webhooks of the same names are an error. Webhooks need a cluster whose API server can reach the test process.
package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/controlplane"
)

const (
	// startTimeout bounds Start; on an idle machine it takes 3 to 4 seconds.
	startTimeout = 3 * time.Minute
	// PollInterval is how often a wait looks again.
	PollInterval = 20 * time.Millisecond
)

// Cluster is the control plane that the tests of one process share. Fill in the
// first group of fields, then call Start. The zero value is a cluster without
// custom resources.
type Cluster struct {
	// CRDs are files and folders with the CustomResourceDefinitions to install.
	CRDs []string
	// Webhooks are files and folders with the webhook configurations to install.
	// A reference to a Service in them is replaced with the address below.
	Webhooks []string
	// Converts tells that the webhook server at the address below converts objects, too, at the path that a definition names for it.
	// Without it that is so for the kinds of Scheme only, and no other definition has a conversion webhook.
	Converts bool
	// Scheme is what Client knows; client-go's if nil. Conversion webhooks are set
	// up for the definitions whose types in it convert through a hub.
	Scheme *runtime.Scheme
	// Nodes is the number of simulated nodes, 2 if zero. An existing cluster keeps its own.
	Nodes int
	// Stages are files with further rules of how simulated pods behave, in kwok's
	// kind Stage: such as that those with a certain image never get ready. One with
	// a weight goes before the kit's own, which have none. An existing cluster keeps its own.
	Stages []string
	// APIServerFlags are further flags of kube-apiserver, by their names without
	// dashes, such as those of its audit log. Among its admission plugins is always OwnerReferencesPermissionEnforcement.
	// An existing cluster keeps its own.
	APIServerFlags map[string]string

	// Config connects as an administrator. Set by Start, like all that follows.
	Config *rest.Config
	// Client is a client with that configuration; it reads from the API server, not from a cache.
	Client client.Client
	// Kubeconfig is the path of a kubeconfig file for the same user.
	Kubeconfig string
	// Serving is where a webhook server of the test process must listen, and its certificates.
	Serving Serving

	// Admin knows the kinds that the kit itself handles, whatever Scheme is.
	Admin client.Client
	// dir is for files that end with the cluster.
	dir    string
	assets string
	// plane is the control plane of this process, or nil.
	plane *controlplane.ControlPlane
	// Existing tells that the cluster outlives the tests.
	Existing bool
	// kinds are the namespaced ones among the definitions.
	kinds []schema.GroupVersionKind
	// leftovers are what Stop removes from a shared cluster, guarded by mu.
	mu        sync.Mutex
	leftovers []client.Object
}

// Serving is the address and the certificates of the test process's webhook server.
type Serving struct {
	Host string
	// Port was free when the cluster was started.
	Port int
	// CertDir holds tls.crt and tls.key.
	CertDir string
}

// Start brings the cluster up and installs its definitions and webhooks. It
// returns when the nodes are ready and the controllers work. After an error
// nothing is left running.
func (c *Cluster) Start(ctx context.Context) error {
	if c.dir != "" {
		return errors.New("start the test cluster: it has been started before")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start the test cluster: %w", err), c.Stop())
	}
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.assets, err = controlplane.FindAssets(); err != nil {
		return err
	}
	if c.Scheme == nil {
		c.Scheme = scheme.Scheme
	}
	if !useExisting() {
		return c.startEmbedded(ctx)
	}
	if c.dir, err = os.MkdirTemp("", "operatortest-"); err != nil {
		return fmt.Errorf("create the cluster's folder: %w", err)
	}
	return c.startExisting(ctx)
}

// Stop ends everything Start began and removes its files. Calling it again, or
// without Start, does nothing.
func (c *Cluster) Stop() error {
	errs := []error{c.removeLeftovers()}
	switch {
	case c.plane != nil:
		errs = append(errs, c.plane.Stop())
	case c.dir != "":
		if err := os.RemoveAll(c.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the cluster's folder: %w", err))
		}
	}
	c.plane, c.dir = nil, ""
	return errors.Join(errs...)
}

// Kubectl runs kubectl against the cluster and returns what it prints. What it
// writes to standard error, warnings included, is part of the error only.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(c.assets, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	return string(output), nil
}

// connect fills in the fields by which tests reach the API server.
func (c *Cluster) connect(config *rest.Config, kubeconfig string) error {
	kinds := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), apiextensionsv1.AddToScheme(kinds)); err != nil {
		return fmt.Errorf("register the kit's kinds: %w", err)
	}
	var err error
	if c.Admin, err = client.New(config, client.Options{Scheme: kinds}); err != nil {
		return fmt.Errorf("make the kit's client: %w", err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: c.Scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	c.Config, c.Kubeconfig = config, kubeconfig
	return nil
}
