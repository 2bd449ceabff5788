package testcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// removalTimeout bounds how long the tests' objects may take to vanish from a shared cluster.
const removalTimeout = 60 * time.Second

// install puts the definitions and webhooks into the cluster through envtest.
func (c *Cluster) install(ctx context.Context) error {
	options := envtest.CRDInstallOptions{Scheme: c.Scheme, Paths: c.CRDs, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return fmt.Errorf("read the definitions in %v: %w", c.CRDs, err)
	}
	if len(c.CRDs) > 0 && len(options.CRDs) == 0 {
		return fmt.Errorf("%v contains no CustomResourceDefinition", c.CRDs)
	}
	var fresh, present []*apiextensionsv1.CustomResourceDefinition
	conversions := map[string]*apiextensionsv1.CustomResourceConversion{}
	for _, definition := range options.CRDs {
		if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
			c.kinds = append(c.kinds, storedKind(definition))
		}
		found := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Admin.Get(ctx, client.ObjectKeyFromObject(definition), found)
		switch {
		case apierrors.IsNotFound(err):
			c.RemoveOnStop(definition)
			fresh = append(fresh, definition)
			conversions[definition.Name] = definition.Spec.Conversion
		case err != nil:
			return fmt.Errorf("look for the definition %s: %w", definition.Name, err)
		default:
			// The cluster's own operator converts its resources. envtest would send conversions to the test process.
			definition.Spec.Conversion = found.Spec.Conversion
			present = append(present, definition)
		}
	}
	if err := envtest.CreateCRDs(c.Config, present); err != nil {
		return fmt.Errorf("update the definitions: %w", err)
	}

	if err := c.noteWebhooks(ctx); err != nil {
		return err
	}

	existing := true // for envtest: whether started by this process or by someone else, it is running
	environment := &envtest.Environment{
		UseExistingCluster:    &existing,
		Config:                c.Config,
		Scheme:                c.Scheme,
		CRDs:                  fresh,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: c.Webhooks, LocalServingHost: "127.0.0.1"},
	}
	_, err := environment.Start()
	webhooks := environment.WebhookInstallOptions
	if err != nil {
		return errors.Join(fmt.Errorf("install the definitions and webhooks: %w", err), webhooks.Cleanup())
	}
	// envtest keeps the certificates in a folder of its own, which a killed process would leave behind.
	certificates := filepath.Join(c.dir, "webhook-certificates")
	if err := os.Rename(webhooks.LocalServingCertDir, certificates); err != nil {
		return fmt.Errorf("move the webhook certificates: %w", err)
	}
	c.Serving = Serving{Host: webhooks.LocalServingHost, Port: webhooks.LocalServingPort, CertDir: certificates}
	if !c.Converts {
		return nil
	}
	for _, definition := range fresh {
		if err := c.redirectConversion(ctx, definition.Name, conversions[definition.Name], webhooks.LocalServingCAData); err != nil {
			return fmt.Errorf("redirect the conversion webhook of %s: %w", definition.Name, err)
		}
	}
	return nil
}

// redirectConversion gives a definition the conversion webhook that its file names, at the address of Serving.
// envtest omits it if Scheme doesn't contain the kind.
func (c *Cluster) redirectConversion(ctx context.Context, name string, conversion *apiextensionsv1.CustomResourceConversion, authority []byte) error {
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	config := conversion.Webhook.ClientConfig
	if config.Service == nil || config.Service.Path == nil {
		return errors.New("it names no Service with a path")
	}
	config.URL = new("https://" + net.JoinHostPort(c.Serving.Host, strconv.Itoa(c.Serving.Port)) + *config.Service.Path)
	config.Service, config.CABundle = nil, authority
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": conversion}})
	if err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.Admin.Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch))
}

// noteWebhooks records the webhooks that are about to be created, in case creating them fails midway. It is an error
// if the cluster already has one of them, because envtest would redirect it to the test process.
func (c *Cluster) noteWebhooks(ctx context.Context) error {
	if len(c.Webhooks) == 0 {
		return nil
	}
	read := envtest.WebhookInstallOptions{Paths: c.Webhooks, LocalServingHost: "127.0.0.1"}
	if err := errors.Join(read.PrepWithoutInstalling(), read.Cleanup()); err != nil {
		return fmt.Errorf("read the webhooks in %v: %w", c.Webhooks, err)
	}
	var webhooks []client.Object
	for _, webhook := range read.MutatingWebhooks {
		webhooks = append(webhooks, webhook)
	}
	for _, webhook := range read.ValidatingWebhooks {
		webhooks = append(webhooks, webhook)
	}
	for _, webhook := range webhooks {
		found := webhook.DeepCopyObject().(client.Object)
		err := c.Admin.Get(ctx, client.ObjectKeyFromObject(webhook), found)
		if err == nil {
			return fmt.Errorf("the cluster already has webhooks named %s, which the tests would take over: stop their operator, or delete them", webhook.GetName())
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for the webhooks %s: %w", webhook.GetName(), err)
		}
	}
	for _, webhook := range webhooks {
		c.RemoveOnStop(webhook)
	}
	return nil
}

// storedKind returns the kind of a definition in the version that is stored in etcd.
func storedKind(definition *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	kind := schema.GroupVersionKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			kind.Version = version.Name
		}
	}
	return kind
}

// RemoveOnStop records an object that Stop must remove. The test process's own cluster doesn't need that: it is
// removed as a whole. Trials may call it concurrently.
func (c *Cluster) RemoveOnStop(object client.Object) {
	if c.Existing {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leftovers = append(c.leftovers, object)
	}
}

// removeLeftovers deletes what the tests created in a shared cluster, in reverse
// order, and waits until each object is gone.
func (c *Cluster) removeLeftovers() error {
	ctx, cancel := context.WithTimeout(context.Background(), removalTimeout)
	defer cancel()
	var errs []error
	for _, object := range slices.Backward(c.leftovers) {
		errs = append(errs, RemoveObject(ctx, c.Admin, object))
	}
	c.leftovers = nil
	return errors.Join(errs...)
}

// RemoveObject deletes an object, and waits until it is gone.
func RemoveObject(ctx context.Context, writer client.Client, object client.Object) error {
	gone := func(ctx context.Context) (bool, error) {
		err := writer.Delete(ctx, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextCancel(ctx, PollInterval, true, gone); err != nil {
		return fmt.Errorf("remove %s: %w", object.GetName(), err)
	}
	return nil
}
