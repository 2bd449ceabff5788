// Package testcluster starts a real control plane for the tests of one process.
//
// [Cluster.Start] runs etcd and kube-apiserver, and also kube-controller-manager, kube-scheduler and kwok. So deleted
// namespaces really disappear, objects whose owner is gone are garbage-collected, and Deployments become available on a
// few simulated nodes; with envtest alone, none of this happens. Service accounts also work as in any cluster: a pod
// that names no account gets its namespace's default one, and tokens that are created for an account are valid.
//
// The programs come from the folder that KUBEBUILDER_ASSETS names. If that isn't set, they come from bin/ in the root
// of the workshop's repository or, outside a checkout of it, from the folder that package controlplane/assets fills.
// They listen on free ports at 127.0.0.1, keep their files in one temporary folder, and run until [Cluster.Stop]. If
// the test process is killed, a watchdog ends them. With [ScratchVariable], later processes may share them, and Stop
// leaves them running.
//
// A pod becomes ready as soon as it is bound to a node, whatever its image, unless it has [UnpullableImage] or
// [UnpullableAnnotation]. A Job's pod then succeeds immediately. [Cluster.Stages] adds rules for pods that must behave
// differently.
//
// The custom resource definitions in [Cluster.CRDs] are installed before the controller manager starts, so that its
// garbage collector knows them from the start. The collector takes up to about 30 seconds to notice a definition that
// is installed later; until then it doesn't collect the children of that definition's objects.
//
// With USE_EXISTING_CLUSTER=true nothing is started. The tests run on the cluster that KUBECONFIG names; [Cluster.Stop]
// removes the definitions and webhooks that [Cluster.Start] created there. Definitions that were there before are
// updated, but not removed. If the cluster already has one of the webhook configurations in [Cluster.Webhooks], Start
// returns an error. Webhooks need a cluster whose API server can reach the test process on 127.0.0.1.
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
	"example.com/operator-workshop/controlplane/install"
)

const (
	// startTimeout bounds Start, which takes 3 to 4 seconds on an idle machine.
	startTimeout = 3 * time.Minute
	// PollInterval is the interval at which a wait checks again.
	PollInterval = 20 * time.Millisecond
)

// Cluster is the control plane that the tests of one process share. Fill in the
// first group of fields, then call Start. The zero value is a cluster without
// custom resources.
type Cluster struct {
	// CRDs are files and folders with the CustomResourceDefinitions to install.
	CRDs []string
	// Webhooks are files and folders with the webhook configurations to install.
	// A reference to a Service in them is replaced with the address in Serving.
	Webhooks []string
	// Converts means that the webhook server at the address in Serving also converts objects, at the path that their
	// definition names. If Converts is false, only the definitions that Scheme selects get a conversion webhook.
	Converts bool
	// Scheme is Client's scheme. If it is nil, Client uses client-go's. Scheme also selects definitions that get a
	// conversion webhook: those whose types in it convert through a hub. A definition that an existing cluster already has
	// keeps its conversion.
	Scheme *runtime.Scheme
	// Nodes is the number of simulated nodes. If it is zero, there are 2. It has no effect on an existing cluster.
	Nodes int
	// Stages are files with rules for simulated pods, in addition to the kit's, as objects of kwok's
	// kind Stage. A rule can, for example, keep pods with a certain image from becoming ready. A rule with
	// a weight takes precedence over the kit's rules for ordinary pods, which have none. Stages have no effect on an
	// existing cluster.
	Stages []string
	// APIServerFlags are flags for kube-apiserver in addition to the kit's, such as those of its audit log. The keys are
	// the flags' names without the leading dashes. The flags have no effect on an existing cluster. On any other cluster,
	// the kit also enables the admission plugin OwnerReferencesPermissionEnforcement.
	APIServerFlags map[string]string

	// Config connects as an administrator or, on an existing cluster, as the user in KUBECONFIG's file. Start sets this
	// field and the exported fields that follow.
	Config *rest.Config
	// Client is a client with the configuration in Config; it reads from the API server, not from a cache.
	Client client.Client
	// Kubeconfig is the path of the kubeconfig file from which Config was made. On an existing cluster, it is the value of
	// KUBECONFIG, which may list several files.
	Kubeconfig string
	// Serving is the address on which a webhook server of the test process must listen, and the server's certificates.
	Serving install.Serving

	// Admin is a client that knows the kinds that the kit itself uses, whatever Scheme is.
	Admin client.Client
	// dir is the control plane's folder or, on an existing cluster, a temporary folder that Stop removes.
	dir    string
	assets string
	// plane is the control plane of this process, or nil. If it is shared, later processes may use it, too.
	plane  *controlplane.ControlPlane
	shared bool
	// Existing means that the tests run on the cluster that KUBECONFIG names.
	Existing bool
	// kinds are the namespaced kinds that the definitions define.
	kinds []schema.GroupVersionKind
	// leftovers are the objects that Stop removes from an existing cluster, guarded by mu.
	mu        sync.Mutex
	leftovers []client.Object
}

// Start starts the cluster and installs its definitions and webhooks. It returns when the nodes are ready and the
// controllers are running; on an existing cluster, it doesn't check that. If it fails, it leaves nothing running,
// except perhaps a shared control plane.
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

// Stop ends everything that Start started and removes its files, except that a shared control plane keeps running.
// From an existing cluster, it removes the objects that the kit created there. Calling it again, or without Start,
// does nothing.
func (c *Cluster) Stop() error {
	errs := []error{c.removeLeftovers()}
	switch {
	case c.shared:
	case c.plane != nil:
		errs = append(errs, c.plane.Stop())
	case c.dir != "":
		if err := os.RemoveAll(c.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the cluster's folder: %w", err))
		}
	}
	c.plane, c.shared, c.dir = nil, false, ""
	return errors.Join(errs...)
}

// Kubectl runs kubectl on the cluster and returns its standard output. Its standard
// error, including warnings, appears only in the error.
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

// connect sets the fields that tests use to reach the API server.
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
