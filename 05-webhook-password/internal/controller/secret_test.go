package controller

import (
	"context"
	"errors"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

func TestFindBlocker(t *testing.T) {
	ownedBy := func(uid types.UID, name, kind, version string, controls bool) func(*corev1.Secret) {
		return func(secret *corev1.Secret) {
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: &controls}}
		}
	}
	const version, kind = "secret.example.com/v1", "Password"
	tests := map[string]struct {
		edit func(*corev1.Secret)
		// want is the reason of the blockedError, or "" if nothing blocks the Password.
		want string
	}{
		"the Password's own":      {edit: func(*corev1.Secret) {}},
		"its own, without labels": {edit: func(secret *corev1.Secret) { secret.Labels = nil }},
		"its own, with another owner": {edit: func(secret *corev1.Secret) {
			secret.OwnerReferences = append(secret.OwnerReferences, metav1.OwnerReference{Name: "other", UID: "other"})
		}},
		"its own is being removed":                             {edit: func(secret *corev1.Secret) { secret.DeletionTimestamp = new(metav1.Now()) }, want: "Replacing"},
		"a former Password's":                                  {edit: ownedBy("former", "login", kind, version, true), want: "Replacing"},
		"a former Password's, with an older API version":       {edit: ownedBy("former", "login", kind, "secret.example.com/v1alpha1", true), want: "Replacing"},
		"another Password's":                                   {edit: ownedBy("other", "other", kind, version, true), want: "NameTaken"},
		"one without an owner":                                 {edit: func(secret *corev1.Secret) { secret.OwnerReferences = nil }, want: "NameTaken"},
		"one without an owner, being removed":                  {edit: func(secret *corev1.Secret) { secret.OwnerReferences, secret.DeletionTimestamp = nil, new(metav1.Now()) }, want: "NameTaken"},
		"one that it owns, but doesn't control":                {edit: ownedBy("uid-of-login", "login", kind, version, false), want: "NameTaken"},
		"that of an object of another kind with the same name": {edit: ownedBy("other", "login", "Passphrase", version, true), want: "NameTaken"},
		"that of a Password of another API group":              {edit: ownedBy("other", "login", kind, "example.org/v1", true), want: "NameTaken"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secret := sealedSecret(t)
			test.edit(secret)
			found := findBlocker(storedPassword(), secret)
			g.Expect(reasonOf(found)).To(Equal(test.want), "see findBlocker in secret.go")
			if found != nil {
				g.Expect(found.message).To(ContainSubstring(`Secret "database"`))
				g.Expect(found.retry).NotTo(HaveOccurred(), "a blocker from findBlocker must not ask for a retry with backoff")
			}
		})
	}
	NewWithT(t).Expect(reasonOf(findBlocker(storedPassword(), nil))).To(BeEmpty(), "findBlocker must return nil if there is no Secret")
}

func TestNewSecret(t *testing.T) {
	g := NewWithT(t)
	password := storedPassword()
	password.Spec.SecretName = ""
	secret := newSecret(password, pass, noon)
	g.Expect(secret).NotTo(BeNil(), "see newSecret in secret.go")
	g.Expect(client.ObjectKeyFromObject(secret)).To(Equal(client.ObjectKey{Namespace: "shop", Name: "login"}), "without secretName, the Secret must have the Password's name")
	g.Expect(secret.Labels).To(Equal(map[string]string{"app.kubernetes.io/managed-by": "password-operator"}), "without the label, the cache would not see the Secret")
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque), "clients must not mistake it for another kind of credentials")
	//workshop:step 5.3a
	made, intact := signedAt(secret)
	//workshop:step 5.3a
	g.Expect(intact).To(BeTrue(), "see newSecret in secret.go")
	//workshop:step 5.3a
	g.Expect(made).To(BeTemporally("==", noon))
	g.Expect(secret.Data["password"]).To(BeEquivalentTo(pass))
}

// reasonOf returns the reason of a blockedError, or "" for nil.
func reasonOf(found *blockedError) string {
	if found == nil {
		return ""
	}
	return found.reason
}

func TestAsRefused(t *testing.T) {
	secrets := corev1.Resource("secrets")
	going := apierrors.NewForbidden(secrets, "database", nil)
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err     error
		refused bool
	}{
		"a quota or a policy":     {err: apierrors.NewForbidden(secrets, "database", errors.New("exceeded quota")), refused: true},
		"an invalid Secret":       {err: apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "database", nil), refused: true},
		"a denial without a code": {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest}}, refused: true},
		"a Secret too large":      {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), refused: true},
		"a terminating namespace": {err: going},
		"a conflict":              {err: apierrors.NewConflict(secrets, "database", nil)},
		"an existing Secret":      {err: apierrors.NewAlreadyExists(secrets, "database")},
		"a server that is busy":   {err: apierrors.NewTooManyRequestsError("later")},
		"a server that fails":     {err: apierrors.NewInternalError(errors.New("etcd"))},
		"no server":               {err: http.ErrHandlerTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := asRefused(test.err)
			refusal, refused := errors.AsType[*blockedError](found)
			g.Expect(refused).To(Equal(test.refused), "see asRefused in secret.go")
			if !refused {
				g.Expect(found).To(BeIdenticalTo(test.err))
				return
			}
			g.Expect(refusal.reason).To(Equal(secretv1.ReasonRefused))
			g.Expect(refusal.message).To(ContainSubstring(test.err.Error()))
			g.Expect(refusal.retry).To(Equal(test.err))
		})
	}
}

// emptyCluster is a client of a cluster without Secrets. It panics on a write.
type emptyCluster struct{ client.Client }

func (emptyCluster) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

func (emptyCluster) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// oneSecret is a client of a cluster whose only Secret has a name other than the one that the Password asks for.
type oneSecret struct {
	emptyCluster
	secret *corev1.Secret
}

func (c oneSecret) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.SecretList).Items = []corev1.Secret{*c.secret}
	return nil
}

func TestFindFormerIgnoresASecretThatIsBeingDeleted(t *testing.T) {
	g := NewWithT(t)
	former := sealedSecret(t)
	former.Name, former.DeletionTimestamp = "former", new(metav1.Now())
	found, err := (&PasswordReconciler{Client: oneSecret{secret: former}}).findFormer(t.Context(), storedPassword())
	g.Expect(err).NotTo(HaveOccurred(), "a Secret that is being deleted must not block the new one, see findFormer in secret.go")
	g.Expect(found).To(BeNil(), "a Secret that is being deleted doesn't count, see findFormer in secret.go")
}

// The operator must use every reason and every state that the API declares, and no other reason.
func TestEveryReasonIsUsed(t *testing.T) {
	g := NewWithT(t)
	impossible, taken, replaced := storedPassword(), sealedSecret(t), sealedSecret(t)
	impossible.Spec.Policy.Length, impossible.Spec.Policy.Repeat = 128, secretv1.RepeatForbidden
	taken.OwnerReferences = nil
	replaced.DeletionTimestamp = new(metav1.Now())
	reconciler := &PasswordReconciler{Client: emptyCluster{}, APIReader: emptyCluster{}, Clock: clocktesting.NewFakePassiveClock(noon)}
	_, err := reconciler.ensureSecret(t.Context(), impossible)
	former := sealedSecret(t)
	former.Name = "former"
	_, errRenamed := (&PasswordReconciler{Client: oneSecret{secret: former}}).findFormer(t.Context(), storedPassword())
	all := []*blockedError{nil, findBlocker(storedPassword(), taken), findBlocker(storedPassword(), replaced)}
	for _, err := range []error{err, errRenamed, asRefused(apierrors.NewForbidden(corev1.Resource("secrets"), "database", nil))} {
		found, isBlocked := errors.AsType[*blockedError](err)
		g.Expect(isBlocked).To(BeTrue(), "this should be a blockedError, see secret.go; found: %v", err)
		all = append(all, found)
	}

	var reasons, states []string
	for _, blocked := range all {
		status := newStatus(storedPassword(), nil, blocked)
		reasons, states = append(reasons, status.Conditions[0].Reason), append(states, status.State)
	}
	g.Expect(declared(t, "Reason")).To(And(Not(BeEmpty()), ConsistOf(reasons)), "the reasons in api/v1/password_types.go should be those that a Password can have")
	g.Expect(declared(t, "State")).To(And(Not(BeEmpty()), HaveEach(BeElementOf(states))), "the states in api/v1/password_types.go should be those that a Password can have")
}
