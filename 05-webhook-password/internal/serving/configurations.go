package serving

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manifests are the webhook configurations as they are deployed, but for their
// names, so that both can be in a cluster. `make manifests` writes the file.
//
//go:embed webhooks.yaml
var manifests []byte

// configurations returns the webhook configurations with the address of this
// process and the bundle. They are unstructured because the two kinds differ in
// their Go types only, not in what is done with them.
func (l *Local) configurations(bundle []byte) ([]*unstructured.Unstructured, error) {
	var configurations []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	for {
		configuration := &unstructured.Unstructured{}
		err := decoder.Decode(configuration)
		if errors.Is(err, io.EOF) {
			return configurations, nil
		}
		if err == nil {
			err = l.aim(configuration, bundle)
		}
		if err != nil {
			return nil, fmt.Errorf("read the webhook configurations: %w", err)
		}
		configurations = append(configurations, configuration)
	}
}

// aim replaces the Service in each webhook with this process.
func (l *Local) aim(configuration *unstructured.Unstructured, bundle []byte) error {
	configuration.SetAnnotations(map[string]string{ServedAtAnnotation: l.address})
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook of %s is no object", configuration.GetName())
		}
		path, found, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		if err != nil || !found {
			return fmt.Errorf("a webhook of %s has no clientConfig.service.path", configuration.GetName())
		}
		fields["clientConfig"] = map[string]any{
			"url":      urlAt(l.address, path),
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
		}
		fillIn(fields)
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// fillIn writes the API server's defaults down, so that a comparison finds only what somebody has changed.
func fillIn(webhook map[string]any) {
	setDefault(webhook, "namespaceSelector", map[string]any{})
	setDefault(webhook, "objectSelector", map[string]any{})
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	for _, rule := range rules {
		if fields, ok := rule.(map[string]any); ok {
			setDefault(fields, "scope", "*")
		}
	}
	webhook["rules"] = rules
}

func setDefault(fields map[string]any, name string, value any) {
	if _, found := fields[name]; !found {
		fields[name] = value
	}
}

func urlAt(address, path string) string { return "https://" + address + path }

// putConfiguration creates the configuration, or updates it if it is not as wanted.
func (l *Local) putConfiguration(ctx context.Context, wanted *unstructured.Unstructured, mayPut func(metav1.Object) error) (changed bool, err error) {
	found, err := l.find(ctx, wanted)
	if err != nil {
		return false, err
	}
	if found == nil {
		if err := l.client.Create(ctx, wanted); err != nil {
			return false, fmt.Errorf("create %s: %w", describe(wanted), err)
		}
		return true, nil
	}
	if err := mayPut(found); err != nil {
		return false, err
	}
	if equality.Semantic.DeepEqual(found.Object["webhooks"], wanted.Object["webhooks"]) &&
		found.GetAnnotations()[ServedAtAnnotation] == l.address {
		return false, nil
	}
	// Nobody else has put anything into the object: it is replaced as a whole, but only as it was read.
	wanted.SetResourceVersion(found.GetResourceVersion())
	if err := l.client.Update(ctx, wanted); err != nil {
		return false, fmt.Errorf("update %s: %w", describe(wanted), err)
	}
	return true, nil
}

// removeConfiguration deletes the configuration unless another process looks after it by now.
func (l *Local) removeConfiguration(ctx context.Context, wanted *unstructured.Unstructured) error {
	found, err := l.find(ctx, wanted)
	if err != nil || found == nil {
		return err
	}
	if l.respect(found) != nil {
		return nil
	}
	asRead := client.Preconditions{UID: new(found.GetUID()), ResourceVersion: new(found.GetResourceVersion())}
	if err := client.IgnoreNotFound(l.client.Delete(ctx, found, asRead)); err != nil {
		return fmt.Errorf("delete %s: %w", describe(wanted), err)
	}
	return nil
}

// find returns nil if the cluster does not have the object.
func (l *Local) find(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(wanted.GroupVersionKind())
	err := l.client.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", describe(wanted), err)
	}
	return found, nil
}

func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}
