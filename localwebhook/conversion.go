package localwebhook

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacedAnnotation is an annotation of a CRD. Its value, a replacement in JSON, records the conversion that a process
// has replaced. A killed process can't restore that conversion, but the next one can.
const replacedAnnotation = "localwebhook.example.com/replaced"

// replacement is a change to a CRD's conversion.
type replacement struct {
	// Former is the conversion to restore at the end, and Written is the one that the process wrote.
	Former, Written *apiextensionsv1.CustomResourceConversion
}

// conversion returns the setting that makes the API server send conversion requests to this process, at the path that
// controller-runtime serves.
func (l *Local) conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://" + l.address + "/convert"), CABundle: l.caBundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// takeConversion makes this process the CRD's converter, and records the former conversion. If the CRD's annotation
// says that another process wrote the former conversion, takeConversion records the one that the other process had
// replaced.
func (l *Local) takeConversion(crd *apiextensionsv1.CustomResourceDefinition) error {
	former := crd.Spec.Conversion
	last, err := readReplacement(crd)
	if err != nil {
		return err
	}
	if last != nil && equality.Semantic.DeepEqual(former, last.Written) {
		former = last.Former
	}
	record, err := json.Marshal(replacement{Former: former, Written: l.conversion()})
	if err != nil {
		return err
	}
	if crd.Annotations == nil {
		crd.Annotations = map[string]string{}
	}
	crd.Annotations[replacedAnnotation] = string(record)
	crd.Spec.Conversion = l.conversion()
	return nil
}

// restoreConversion undoes takeConversion. If someone else has changed the conversion since, it stays as it is.
func (l *Local) restoreConversion(crd *apiextensionsv1.CustomResourceDefinition) error {
	last, err := readReplacement(crd)
	if err != nil || last == nil || !equality.Semantic.DeepEqual(last.Written, l.conversion()) {
		return err
	}
	delete(crd.Annotations, replacedAnnotation)
	if equality.Semantic.DeepEqual(crd.Spec.Conversion, last.Written) {
		crd.Spec.Conversion = last.Former
	}
	return nil
}

// readReplacement returns the replacement that the CRD's annotation records, or nil if there is none.
func readReplacement(crd *apiextensionsv1.CustomResourceDefinition) (*replacement, error) {
	record, found := crd.Annotations[replacedAnnotation]
	if !found {
		return nil, nil
	}
	last := &replacement{}
	if err := json.Unmarshal([]byte(record), last); err != nil {
		return nil, fmt.Errorf("read the annotation %s: %w: remove it", replacedAnnotation, err)
	}
	return last, nil
}

// changeCRD gets a CRD, and patches what change has changed. The lock, which is the resource version in the patch, makes
// the API server refuse the patch if someone else has written the CRD since. Then changeCRD starts again.
func (l *Local) changeCRD(ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := l.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return fmt.Errorf("get the CRD %s: %w", name, err)
		}
		before := crd.DeepCopy()
		if err := change(crd); err != nil {
			return fmt.Errorf("the CRD %s: %w", name, err)
		}
		if equality.Semantic.DeepEqual(before, crd) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := l.client.Patch(ctx, crd, patch); err != nil {
			return fmt.Errorf("patch the CRD %s: %w", name, err)
		}
		return nil
	})
}
