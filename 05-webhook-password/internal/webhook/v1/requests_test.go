package v1_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

type outcome struct {
	refusal    error
	warnings   []string
	secretName string
}

// differs returns how the outcome differs from the one that the case wants, in words meant for a learner. It returns
// "" if there is no difference.
func (c *admissionCase) differs(o outcome) string {
	if difference := c.differsInRefusal(o.refusal); difference != "" {
		return difference
	}
	switch {
	case c.warning == "" && len(o.warnings) > 0:
		return fmt.Sprintf("there should be no warning, but there is %q", o.warnings)
	case c.warning != "" && (len(o.warnings) != 1 || !strings.Contains(o.warnings[0], c.warning)):
		return fmt.Sprintf("there should be one warning with %q, but there is %q", c.warning, o.warnings)
	case c.secretName != "" && c.secretName != cmp.Or(o.secretName, noName):
		return fmt.Sprintf("spec.secretName should be %q, but is %q", c.secretName, o.secretName)
	}
	return ""
}

func (c *admissionCase) differsInRefusal(refusal error) string {
	reason := metav1.StatusReasonInvalid
	if c.forbidden {
		reason = metav1.StatusReasonForbidden
	}
	switch {
	case c.refused == "" && refusal == nil:
		return ""
	case c.refused == "":
		return fmt.Sprintf("the request should pass, but was refused: %v", refusal)
	case refusal == nil:
		return fmt.Sprintf("the request should be refused with %q, but passed", c.refused)
	case !strings.Contains(refusal.Error(), c.refused):
		return fmt.Sprintf("the request should be refused with %q, but was refused with: %v", c.refused, refusal)
	case apierrors.ReasonForError(refusal) != reason:
		return fmt.Sprintf("the reason of the refusal should be %s, but is %s", reason, apierrors.ReasonForError(refusal))
	}
	return ""
}

// try sends the request of a case to the API server, as a dry run.
func (e *environment) try(ctx context.Context, namespace string, c admissionCase) (outcome, error) {
	as, err := e.clientFor(c.as)
	if err != nil {
		return outcome{}, err
	}
	object, err := e.prepare(ctx, namespace, c)
	if err != nil {
		return outcome{}, err
	}
	ctx, collected := e.warnings.collect(ctx)
	var refusal error
	switch {
	case c.new == nil:
		refusal = as.Delete(ctx, object, client.DryRunAll)
	case c.old == nil:
		refusal = as.Create(ctx, object, client.DryRunAll)
	default:
		refusal = as.Update(ctx, object, client.DryRunAll)
	}
	return outcome{refusal: refusal, warnings: collected(), secretName: secretNameIn(object)}, nil
}

// prepare returns the object to send. For an update, that is the existing object with the labels, the annotations and
// the spec of the case's new object.
func (e *environment) prepare(ctx context.Context, namespace string, c admissionCase) (client.Object, error) {
	if c.old == nil {
		object := c.new.DeepCopyObject().(client.Object)
		object.SetNamespace(namespace)
		return object, nil
	}
	object := c.old.DeepCopyObject().(client.Object)
	if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.old.GetName()}, object); err != nil {
		return nil, fmt.Errorf("read %s before the request: %w", c.old.GetName(), err)
	}
	if c.new == nil {
		return object, nil
	}
	object.SetLabels(c.new.GetLabels())
	object.SetAnnotations(c.new.GetAnnotations())
	switch wanted := c.new.(type) {
	case *secretv1.Password:
		object.(*secretv1.Password).Spec = wanted.Spec
	case *secretv1alpha1.Password:
		object.(*secretv1alpha1.Password).Spec = wanted.Spec
	}
	return object, nil
}

func secretNameIn(object client.Object) string {
	if password, ok := object.(*secretv1.Password); ok {
		return password.Spec.SecretName
	}
	return ""
}

// clientFor makes a client that impersonates the user, if there is one, and collects warnings.
func (e *environment) clientFor(user string) (client.Client, error) {
	config := rest.CopyConfig(e.Config)
	config.WarningHandlerWithContext = e.warnings
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	if user == editor {
		config.Impersonate.Groups = []string{"system:masters"}
	}
	return client.New(config, client.Options{Scheme: e.Scheme, Mapper: e.Client.RESTMapper()})
}

// warnings assigns each warning to the request that caused it.
type warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (*warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if collect, ok := ctx.Value(warningsKey{}).(func(string)); ok && code == 299 {
		collect(text)
	}
}

// collect returns a context for a request, and a function that returns the request's warnings.
func (*warnings) collect(ctx context.Context) (context.Context, func() []string) {
	var mu sync.Mutex
	var texts []string
	add := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, text)
	}
	return context.WithValue(ctx, warningsKey{}, add), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return texts
	}
}

// strictDecoder returns a decoder that refuses unknown and duplicate fields.
func strictDecoder(scheme *runtime.Scheme) runtime.Decoder {
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}
