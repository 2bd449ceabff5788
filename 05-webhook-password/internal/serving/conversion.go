package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

const (
	// Definition is the CustomResourceDefinition whose versions the webhook converts.
	Definition = "passwords.secret.example.com"
	// ConversionBeforeAnnotation is on that CustomResourceDefinition while a local
	// webhook server converts. Its value is the stanza spec.conversion to give back, in
	// JSON: the last that was not a local server's. It is in the cluster because a
	// process that is killed forgets.
	ConversionBeforeAnnotation = "secret.example.com/conversion-before"
)

var errNoDefinition = errors.New("the cluster does not know Passwords: install them with `make install`")

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// putConversion makes the CustomResourceDefinition name this process as its
// converter. It writes only what differs: the API server rebuilds all that it has
// for a kind, and ends every watch of it, after each change of its definition.
func (l *Local) putConversion(ctx context.Context, bundle []byte, mayPut func(metav1.Object) error) (changed bool, err error) {
	definition, err := l.findDefinition(ctx)
	if err != nil {
		return false, err
	}
	if err := mayPut(definition); err != nil {
		return false, err
	}
	before := definition.DeepCopy()
	if err := l.noteConversion(definition); err != nil {
		return false, err
	}
	metav1.SetMetaDataAnnotation(&definition.ObjectMeta, ServedAtAnnotation, l.address)
	definition.Spec.Conversion = l.conversion(bundle)
	return l.patchDefinition(ctx, before, definition)
}

func (l *Local) conversion(bundle []byte) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(urlAt(l.address, webhookv1.ConvertPath)), CABundle: bundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// noteConversion notes the present stanza, unless it is a local server's: this one's,
// or one's that was killed. What was there before that is noted already.
func (l *Local) noteConversion(definition *apiextensionsv1.CustomResourceDefinition) error {
	if l.isLocal(definition) {
		return nil
	}
	note, err := json.Marshal(definition.Spec.Conversion)
	if err != nil {
		return fmt.Errorf("note the conversion of %s: %w", Definition, err)
	}
	metav1.SetMetaDataAnnotation(&definition.ObjectMeta, ConversionBeforeAnnotation, string(note))
	return nil
}

// isLocal reports whether the definition names as its converter the local server that looks after it, or this one.
func (l *Local) isLocal(definition *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.URL == nil {
		return false
	}
	url := *conversion.Webhook.ClientConfig.URL
	return url == urlAt(l.address, webhookv1.ConvertPath) || url == urlAt(definition.Annotations[ServedAtAnnotation], webhookv1.ConvertPath)
}

// restoreConversion gives the stanza back that was noted, unless another process
// converts by now, or somebody has just written another stanza.
func (l *Local) restoreConversion(ctx context.Context) error {
	definition, err := l.findDefinition(ctx)
	if errors.Is(err, errNoDefinition) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.respect(definition) != nil {
		return nil
	}
	before := definition.DeepCopy()
	if l.isLocal(definition) {
		if definition.Spec.Conversion, err = noted(definition); err != nil {
			return err
		}
	}
	delete(definition.Annotations, ConversionBeforeAnnotation)
	delete(definition.Annotations, ServedAtAnnotation)
	_, err = l.patchDefinition(ctx, before, definition)
	return err
}

// noted returns nil, which is no conversion, if somebody has removed the note.
func noted(definition *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceConversion, error) {
	note, found := definition.Annotations[ConversionBeforeAnnotation]
	if !found {
		return nil, nil
	}
	conversion := &apiextensionsv1.CustomResourceConversion{}
	if err := json.Unmarshal([]byte(note), conversion); err != nil {
		return nil, fmt.Errorf("read the annotation %s of %s: %w", ConversionBeforeAnnotation, Definition, err)
	}
	return conversion, nil
}

func (l *Local) findDefinition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err := l.client.Get(ctx, client.ObjectKey{Name: Definition}, definition)
	if apierrors.IsNotFound(err) {
		return nil, errNoDefinition
	}
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", Definition, err)
	}
	return definition, nil
}

// patchDefinition writes what differs, if anything does, and only if the definition is still as it was read.
func (l *Local) patchDefinition(ctx context.Context, before, definition *apiextensionsv1.CustomResourceDefinition) (changed bool, err error) {
	if equality.Semantic.DeepEqual(before, definition) {
		return false, nil
	}
	asRead := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := l.client.Patch(ctx, definition, asRead); err != nil {
		return false, fmt.Errorf("patch CustomResourceDefinition %s: %w", Definition, err)
	}
	return true, nil
}
