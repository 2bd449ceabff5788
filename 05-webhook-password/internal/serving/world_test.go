package serving_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
)

const (
	crdName = "passwords.secret.example.com"
	// The names of the local webhook configurations.
	mutatingName   = "password-operator-local-mutating-webhook-configuration"
	validatingName = "password-operator-local-validating-webhook-configuration"
	// The paths at which controller-runtime serves the webhooks.
	mutatePath   = "/mutate-secret-example-com-v1-password"
	validatePath = "/validate-secret-example-com-v1-password"
	convertPath  = "/convert"
)

func newPassword(namespace, name string) *secretv1.Password {
	return &secretv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func newAlphaPassword(namespace, name string) *secretv1alpha1.Password {
	return &secretv1alpha1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// newImpossible returns a Password that only the validating webhook refuses: it asks for 11 different digits.
func newImpossible(namespace string) *secretv1.Password {
	password := newPassword(namespace, "impossible")
	password.Spec.Policy = secretv1.PasswordPolicy{
		Length: 20, Repeat: secretv1.RepeatForbidden, Require: []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: new(int32(11))}},
	}
	return password
}

func mutating(ctx context.Context) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	return configuration, api.Get(ctx, client.ObjectKey{Name: mutatingName}, configuration)
}

func validating(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return configuration, api.Get(ctx, client.ObjectKey{Name: validatingName}, configuration)
}

func definition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	found := &apiextensionsv1.CustomResourceDefinition{}
	return found, api.Get(ctx, client.ObjectKey{Name: crdName}, found)
}

// setConversion changes spec.conversion of the CRD, and restores it when the Ginkgo spec ends.
func setConversion(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) {
	GinkgoHelper()
	found, err := definition(ctx)
	Expect(err).NotTo(HaveOccurred())
	before := found.Spec.Conversion
	change := func(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) error {
			found, err := definition(ctx)
			if err != nil {
				return err
			}
			found.Spec.Conversion = conversion
			return api.Update(ctx, found)
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	}
	change(ctx, conversion)
	DeferCleanup(func(ctx SpecContext) { change(ctx, before) })
}

// expectNothingLeft checks that a process has deleted its webhook configurations, and that the CRD has this conversion.
func expectNothingLeft(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) {
	GinkgoHelper()
	_, err := mutating(ctx)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	Expect(err).To(HaveOccurred(), "the process must delete its mutating webhook configuration")
	_, err = validating(ctx)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	Expect(err).To(HaveOccurred(), "the process must delete its validating webhook configuration")
	found, err := definition(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Spec.Conversion).To(Equal(conversion), "the process must restore spec.conversion, unless someone else has changed it")
}

// served returns an error unless all three webhooks work: defaulting, validation and conversion.
func served(ctx context.Context, namespace string) error {
	password := newPassword(namespace, "filled-in")
	if err := api.Create(ctx, password, client.DryRunAll); err != nil {
		return fmt.Errorf("create a valid Password: %w", err)
	}
	if password.Spec.SecretName != password.Name {
		return fmt.Errorf("the mutating webhook has not filled in spec.secretName: it is %q", password.Spec.SecretName)
	}
	err := api.Create(ctx, newImpossible(namespace), client.DryRunAll)
	if err == nil {
		return errors.New("the validating webhook must refuse a Password with 11 different digits, but accepts it")
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be at most 10") {
		return fmt.Errorf("the validating webhook must refuse a Password with 11 different digits, but the create fails with: %w", err)
	}
	return converted(ctx, namespace)
}

// converted returns an error unless a Password that is created in version v1alpha1 comes back in that version, with the
// same length and number of digits.
func converted(ctx context.Context, namespace string) error {
	password := newAlphaPassword(namespace, "converted")
	password.Spec.Length, password.Spec.Digits = 31, new(int32(7))
	if err := api.Create(ctx, password, client.DryRunAll); err != nil {
		return fmt.Errorf("create a Password in version v1alpha1: %w", err)
	}
	if password.Spec.Length != 31 || *password.Spec.Digits != 7 {
		return fmt.Errorf("a Password in version v1alpha1 has come back with the length %d and %d digits", password.Spec.Length, *password.Spec.Digits)
	}
	return nil
}
