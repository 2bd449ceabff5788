// Package v1 contains the admission webhooks for Passwords, which fill in defaults
// and refuse invalid requests. They get objects in version v1 only, because the API
// server converts other versions first (matchPolicy Equivalent).
package v1

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/generator"
)

// SetupPasswordWebhookWithManager registers the webhooks of Passwords with the manager's
// webhook server. The conversion webhook is one of them, because v1 is a hub.
func SetupPasswordWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &secretv1.Password{}).
		WithValidator(&PasswordCustomValidator{}).
		WithDefaulter(&PasswordCustomDefaulter{}).
		Complete()
}

// failurePolicy=ignore: nothing depends on this default, because the operator assumes the same default for a Password
// without a secretName. timeoutSeconds=1: a second is plenty, and the user is waiting.
//
// +kubebuilder:webhook:path=/mutate-secret-example-com-v1-password,mutating=true,failurePolicy=ignore,sideEffects=None,groups=secret.example.com,resources=passwords,verbs=create;update,versions=v1,name=mpassword-v1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=1,reinvocationPolicy=IfNeeded

// PasswordCustomDefaulter fills in what a default of the CRD can't: a value that depends on another field.
type PasswordCustomDefaulter struct{}

var _ admission.Defaulter[*secretv1.Password] = (*PasswordCustomDefaulter)(nil)

// Default sets a missing secretName to the Password's name. A Password with a generateName has no name
// yet, because the API server generates names after mutation; its secretName stays empty.
//
// controller-runtime compares the object that the API server sent with the object as Go writes it, and
// answers with the difference. A comment in password_types.go explains what this requires of the API types.
//
//workshop:step 5.7
func (*PasswordCustomDefaulter) Default(_ context.Context, password *secretv1.Password) error {
	password.Spec.SecretName = password.EffectiveSecretName()
	return nil
}

// failurePolicy=fail: without a usable answer, the request is refused, so no invalid spec gets in while the server is
// down. sideEffects=None lets the API server call the webhook in a dry run, too.
//
// +kubebuilder:webhook:path=/validate-secret-example-com-v1-password,mutating=false,failurePolicy=fail,sideEffects=None,groups=secret.example.com,resources=passwords,verbs=create;update;delete,versions=v1,name=vpassword-v1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=5

// PasswordCustomValidator refuses what the schema of the CRD doesn't: policies for which the
// generator's alphabets are too small, a new name for the Secret, and the deletion of a
// protected Password. It also checks what the schema of v1 checks, because the API server
// does not apply that schema to a request in v1alpha1.
type PasswordCustomValidator struct{}

var _ admission.Validator[*secretv1.Password] = (*PasswordCustomValidator)(nil)

// ValidateCreate refuses an invalid secretName, an impossible policy and an invalid rotation, and warns of a policy
// whose passwords can be guessed.
//
//workshop:step 5.6a
func (*PasswordCustomValidator) ValidateCreate(_ context.Context, password *secretv1.Password) (admission.Warnings, error) {
	problems := slices.Concat(
		password.Spec.ValidateSecretName(secretNamePath),
		generator.Check(password.Spec.Policy, policyPath),
		password.Spec.Rotation.Validate(rotationPath),
	)
	return generator.Warnings(password.Spec.Policy), asInvalid(password, problems)
}

// ValidateUpdate refuses an update that moves the password to another Secret, or that sets an impossible policy or an
// invalid rotation, and warns of a changed policy whose passwords can be guessed. It skips a policy or a rotation that
// stays the same (ratcheting), so you can still change other parts of an object that was stored under other rules.
//
//workshop:step 5.6b
func (*PasswordCustomValidator) ValidateUpdate(_ context.Context, before, password *secretv1.Password) (admission.Warnings, error) {
	problems := checkSecretName(before, password)
	if !equality.Semantic.DeepEqual(before.Spec.Rotation, password.Spec.Rotation) {
		problems = append(problems, password.Spec.Rotation.Validate(rotationPath)...)
	}
	if equality.Semantic.DeepEqual(before.Spec.Policy, password.Spec.Policy) {
		return nil, asInvalid(password, problems)
	}
	problems = append(problems, generator.Check(password.Spec.Policy, policyPath)...)
	return generator.Warnings(password.Spec.Policy), asInvalid(password, problems)
}

// ValidateDelete refuses the deletion of a Password that an annotation protects.
//
//workshop:step 5.6b
func (*PasswordCustomValidator) ValidateDelete(_ context.Context, password *secretv1.Password) (admission.Warnings, error) {
	if password.Annotations[secretv1.ProtectionAnnotation] != secretv1.ProtectionEnabled {
		return nil, nil
	}
	return nil, apierrors.NewForbidden(secretv1.SchemeGroupVersion.WithResource("passwords").GroupResource(), password.Name,
		field.Forbidden(field.NewPath("metadata", "annotations").Key(secretv1.ProtectionAnnotation),
			fmt.Sprintf("it is %q: remove the annotation first", secretv1.ProtectionEnabled)))
}

var (
	policyPath     = field.NewPath("spec", "policy")
	secretNamePath = field.NewPath("spec", "secretName")
	rotationPath   = field.NewPath("spec", "rotation")
)

// checkSecretName compares the effective names, so you may write the default name into the spec.
//
//workshop:step 5.6b
func checkSecretName(before, password *secretv1.Password) field.ErrorList {
	if before.EffectiveSecretName() == password.EffectiveSecretName() {
		return nil
	}
	return field.ErrorList{field.Invalid(secretNamePath, password.Spec.SecretName,
		fmt.Sprintf("can't be changed from %q: make another Password", before.EffectiveSecretName()))}
}

// asInvalid returns nil if there are no problems, and otherwise the error that the API server itself would return.
//
//workshop:step 5.6a
func asInvalid(password *secretv1.Password, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(secretv1.SchemeGroupVersion.WithKind("Password").GroupKind(), password.Name, problems)
}
