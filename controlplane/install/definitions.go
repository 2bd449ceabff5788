package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// installDefinitions installs the definitions, and waits until the API server serves them.
func (m *Manifests) installDefinitions(ctx context.Context, cluster client.Client, config *rest.Config, webhooks envtest.WebhookInstallOptions, shared bool) error {
	// The definitions in asTheyAre keep the conversion that is set here. For the others, envtest sets or removes it.
	var asTheyAre, others []*apiextensionsv1.CustomResourceDefinition
	for _, definition := range m.Definitions {
		found := &apiextensionsv1.CustomResourceDefinition{}
		err := cluster.Get(ctx, client.ObjectKeyFromObject(definition), found)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look for the definition %s: %w", definition.Name, err)
		}
		if apierrors.IsNotFound(err) {
			m.creating(definition)
		}
		switch {
		case err == nil && shared:
			definition.Spec.Conversion = found.Spec.Conversion
			asTheyAre = append(asTheyAre, definition)
		case m.Converts && namesWebhook(definition):
			if err := m.redirectConversion(definition.Spec.Conversion.Webhook, webhooks.LocalServingCAData); err != nil {
				return fmt.Errorf("redirect the conversion webhook of %s: %w", definition.Name, err)
			}
			asTheyAre = append(asTheyAre, definition)
		default:
			others = append(others, definition)
		}
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: asTheyAre})
	if err == nil {
		_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: others, Scheme: m.Scheme, WebhookOptions: webhooks})
	}
	if err != nil {
		return fmt.Errorf("install the definitions: %w", err)
	}
	return nil
}

func namesWebhook(definition *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := definition.Spec.Conversion
	return conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil
}

// redirectConversion makes a conversion webhook use the address in Serving, at the path that its definition names.
func (m *Manifests) redirectConversion(webhook *apiextensionsv1.WebhookConversion, authority []byte) error {
	service := webhook.ClientConfig.Service
	if service == nil || service.Path == nil {
		return errors.New("it names no Service with a path")
	}
	address := net.JoinHostPort(m.Serving.Host, strconv.Itoa(m.Serving.Port))
	webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: new("https://" + address + *service.Path), CABundle: authority}
	return nil
}
