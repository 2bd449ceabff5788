package serving

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/localwebhook"
)

// crdName is the name of the CRD whose objects the operator converts.
const crdName = "passwords.secret.example.com"

// manifests are the webhook configurations of a deployment, but under other names, so that one cluster can contain
// those of a deployment and those of a local process. `make manifests` writes the file.
//
//go:embed webhooks.yaml
var manifests []byte

// setupLocal makes the manager register its webhooks by URL.
func setupLocal(mgr ctrl.Manager, local *localwebhook.Local) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	if err := errors.Join(documents.Decode(mutating), documents.Decode(validating)); err != nil {
		return fmt.Errorf("read webhooks.yaml: %w", err)
	}
	return local.SetupWithManager(mgr, mutating, validating, crdName)
}
