package v1_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// only selects the namespaces whose admission label has this value: byWebhooks or byPolicies.
func only(who string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{admissionLabel: who}}
}

// readCopies reads the objects that kustomize builds from config/webhook and config/policies,
// and confines the webhooks to one namespace and the policies to another. Webhooks get the address of the test's
// server.
func (e *environment) readCopies(ctx context.Context) ([]client.Object, error) {
	var copies []client.Object
	for _, folder := range []string{"../../../config/webhook", "../../../config/policies"} {
		objects, err := e.kustomize(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if e.confine(object) {
				copies = append(copies, object)
			}
		}
	}
	return copies, nil
}

// confine makes webhooks apply only in the namespace byWebhooks, and policies only in the namespace byPolicies. It
// reports whether to install the object.
func (e *environment) confine(object client.Object) bool {
	switch configuration := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].NamespaceSelector = only(byWebhooks)
			e.redirect(&configuration.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].NamespaceSelector = only(byWebhooks)
			e.redirect(&configuration.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		configuration.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: only(byPolicies)}
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		configuration.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: only(byPolicies)}
	case *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicy:
	default:
		return false // the Service, which has no pods here
	}
	return true
}

func (e *environment) redirect(config *admissionregistrationv1.WebhookClientConfig) {
	config.URL = new(e.url(*config.Service.Path))
	config.Service = nil
	config.CABundle = e.definition.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// kustomize returns the objects that kustomize builds from a folder.
func (e *environment) kustomize(ctx context.Context, folder string) ([]client.Object, error) {
	content, err := e.Kubectl(ctx, "kustomize", folder)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(content)))
	var objects []client.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", folder, err)
		}
		object, err := e.decode(document)
		if err != nil {
			return nil, fmt.Errorf("read an object of %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
}

// decode reads an object strictly. Otherwise, a misspelt field, and the rule in it, would silently be dropped.
func (e *environment) decode(document []byte) (client.Object, error) {
	decoded, err := runtime.Decode(strictDecoder(e.Scheme), document)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", decoded)
	}
	return object, nil
}
