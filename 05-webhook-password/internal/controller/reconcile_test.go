package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// testReconciler returns a reconciler with an in-memory client, which contains the objects and is also the APIReader.
// The functions in faults replace the client's methods, for example to make a call fail. The reconciler's clock shows
// an hour after noon.
func testReconciler(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *PasswordReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(secretv1.AddToScheme(scheme)).To(Succeed())
	memory := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&secretv1.Password{}).WithObjects(objects...).WithInterceptorFuncs(faults).Build()
	return &PasswordReconciler{
		Client: memory, APIReader: memory, Scheme: scheme,
		Recorder: events.NewFakeRecorder(9), Clock: clocktesting.NewFakePassiveClock(noon.Add(time.Hour)),
	}
}

// reconcileOnce calls Reconcile for storedPassword.
func reconcileOnce(t *testing.T, reconciler *PasswordReconciler) (err error) {
	t.Helper()
	_, err = reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(storedPassword())})
	return err
}

// secretOf reads the Secret of storedPassword through the reconciler's client.
func secretOf(t *testing.T, reconciler *PasswordReconciler) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := reconciler.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "database"}, secret)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "see ensureSecret in secret.go")
	return secret
}

// eventOf returns the next event, such as "Normal Generated …", or "" if there is none.
func eventOf(reconciler *PasswordReconciler) string {
	select {
	case event := <-reconciler.Recorder.(*events.FakeRecorder).Events:
		return event
	default:
		return ""
	}
}

func TestReconcileCreatesTheSecret(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{}, storedPassword())
	g.Expect(reconcileOnce(t, reconciler)).To(Succeed())
	secret := secretOf(t, reconciler)
	length := len(secret.Data["password"]) // Gomega prints what it compares
	g.Expect(length).To(Equal(20), "the policy asks for 20 characters, see newSecret in secret.go")
	g.Expect(metav1.IsControlledBy(secret, storedPassword())).To(BeTrue(), "the garbage collector needs the owner reference, see createSecret in secret.go")
	g.Expect(secret.OwnerReferences[0].BlockOwnerDeletion).To(HaveValue(BeFalse()), "some clusters require more permissions to set blockOwnerDeletion, see createSecret in secret.go")
	g.Expect(eventOf(reconciler)).To(HavePrefix("Normal Generated"), "see announceSecret in secret.go")

	g.Expect(reconcileOnce(t, reconciler)).To(Succeed())
	again := secretOf(t, reconciler).ResourceVersion
	g.Expect(again).To(Equal(secret.ResourceVersion), "a second call must write nothing")
	g.Expect(eventOf(reconciler)).To(BeEmpty())
}

func TestReconcileHasNothingToDo(t *testing.T) {
	//workshop:step 5.2b
	terminating := apierrors.NewForbidden(corev1.Resource("secrets"), "database", nil)
	//workshop:step 5.2b
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	deleted := storedPassword()
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"test.example.com/hold"}
	tests := map[string]struct {
		objects []client.Object
		// refusal is the error with which each create fails. It is nil if Reconcile must not try to create a Secret.
		refusal error
	}{
		"the Password does not exist":   {},
		"the Password is being deleted": {objects: []client.Object{deleted}},
		//workshop:step 5.2b
		"its namespace is being deleted": {objects: []client.Object{storedPassword()}, refusal: terminating},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			created := false
			reconciler := testReconciler(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				created = true
				return test.refusal
			}}, test.objects...)
			g.Expect(reconcileOnce(t, reconciler)).To(Succeed(), "see Reconcile in password_controller.go")
			g.Expect(created).To(Equal(test.refusal != nil), "Reconcile must try to create a Secret if the Password exists and is not being deleted, and otherwise not")
			g.Expect(eventOf(reconciler)).To(BeEmpty())
		})
	}
}

func TestReconcileReturnsErrors(t *testing.T) {
	outage := errors.New("etcd is down")
	fails := map[string]interceptor.Funcs{
		"the Secret can't be read": {Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isPassword := object.(*secretv1.Password); isPassword {
				return reader.Get(ctx, key, object, options...)
			}
			return outage
		}},
		//workshop:step 5.2b
		"the Secret can't be created": {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return outage }},
	}
	for name, faults := range fails {
		t.Run(name, func(t *testing.T) {
			err := reconcileOnce(t, testReconciler(t, faults, storedPassword()))
			NewWithT(t).Expect(err).To(MatchError(outage), "the error should be wrapped with %%w and returned, so that the request is retried: see Reconcile in password_controller.go")
		})
	}
}

// A process that is told to stop should finish a call that has begun. The call needs a deadline, because the API server
// might never answer.
func TestReconcileIsBounded(t *testing.T) {
	g := NewWithT(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	looked := false
	reconciler := testReconciler(t, interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, isPassword := object.(*secretv1.Password); isPassword {
			return reader.Get(ctx, key, object, options...)
		}
		looked = true
		g.Expect(ctx.Err()).NotTo(HaveOccurred(), "a call that has begun should finish even if the operator is told to stop, see Reconcile in password_controller.go")
		deadline, bounded := ctx.Deadline()
		g.Expect(bounded).To(BeTrue(), "the context needs reconcileTimeout, see Reconcile in password_controller.go")
		g.Expect(time.Until(deadline)).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcileTimeout)), "the deadline must be at most reconcileTimeout away")
		return reader.Get(ctx, key, object, options...)
	}}, storedPassword())
	_, err := reconciler.Reconcile(stopped, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(storedPassword())})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(looked).To(BeTrue(), "Reconcile should look for the Secret, see ensureSecret and findSecret in secret.go")
}

func TestFindSecret(t *testing.T) {
	g := NewWithT(t)
	found, err := testReconciler(t, interceptor.Funcs{}, sealedSecret(t)).findSecret(t.Context(), storedPassword())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveField("Name", "database"), "the Secret exists and must be found, see findSecret in secret.go")

	found, err = testReconciler(t, interceptor.Funcs{}).findSecret(t.Context(), storedPassword())
	g.Expect(err).NotTo(HaveOccurred(), "a Secret that does not exist yet is not an error, see findSecret in secret.go")
	g.Expect(found).To(BeNil())
}

// passwordWith returns storedPassword after a change.
func passwordWith(change func(*secretv1.Password)) *secretv1.Password {
	password := storedPassword()
	change(password)
	return password
}

func TestEnsureSecretIsBlocked(t *testing.T) {
	foreign := sealedSecret(t)
	foreign.OwnerReferences = nil
	tests := map[string]struct {
		password *secretv1.Password
		secret   *corev1.Secret
		want     string
		// has is true if ensureSecret must also return the Password's own Secret, so that the status still names it.
		has bool
	}{
		"the Secret is someone else's": {password: storedPassword(), secret: foreign, want: "NameTaken"},
		//workshop:step 5.4c
		"no password meets the policy": {password: passwordWith(func(p *secretv1.Password) { p.Spec.Policy.Length, p.Spec.Policy.Repeat = 128, "Forbidden" }), secret: sealedSecret(t), want: "Impossible", has: true},
		//workshop:step 5.4c
		"no Secret can have the name": {password: passwordWith(func(p *secretv1.Password) { p.Spec.SecretName = "NOT/a name" }), secret: sealedSecret(t), want: "Impossible"},
		//workshop:step 5.10
		"the Password has a Secret of another name": {password: passwordWith(func(p *secretv1.Password) { p.Spec.SecretName = "other" }), secret: sealedSecret(t), want: "NameChanged", has: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reconciler := testReconciler(t, interceptor.Funcs{}, test.secret)
			before := secretOf(t, reconciler)
			secret, err := reconciler.ensureSecret(t.Context(), test.password)
			blocked, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(BeTrue(), "ensureSecret should return a blockedError, see secret.go; it returns: %v", err)
			g.Expect(blocked.reason).To(Equal(test.want))
			g.Expect(secret != nil).To(Equal(test.has), "ensureSecret must return the Password's own Secret, for the status, if the policy is impossible or spec.secretName has changed to another valid name, and otherwise no Secret")
			unchanged := secretOf(t, reconciler).ResourceVersion == before.ResourceVersion
			g.Expect(unchanged).To(BeTrue(), "the operator must not write to this Secret, see ensureSecret in secret.go")
		})
	}
}

func TestEnsureSecretReportsARefusal(t *testing.T) {
	refusal := apierrors.NewForbidden(corev1.Resource("secrets"), "database", errors.New("a policy"))
	faults := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return refusal
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refusal
		},
	}
	unlabelled := sealedSecret(t)
	unlabelled.Labels = nil
	for name, test := range map[string]struct {
		objects []client.Object
		see     string
	}{
		"of a new Secret":         {see: "see createSecret in secret.go"},
		"of a change to a Secret": {objects: []client.Object{unlabelled}, see: "see patchSecret in secret.go"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reconciler := testReconciler(t, faults, test.objects...)
			secret, err := reconciler.ensureSecret(t.Context(), storedPassword())
			blocked, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(BeTrue(), "the error of a refused write should be passed through asRefused, %s; found: %v",
				test.see, err)
			g.Expect(blocked.reason).To(Equal(secretv1.ReasonRefused), test.see)
			g.Expect(blocked.retry).To(MatchError(refusal), test.see)
			g.Expect(secret != nil).To(Equal(test.objects != nil),
				"the status must name the Secret that exists, and no Secret that was refused, %s", test.see)
		})
	}
}

func TestEnsureSecretReplacesThePassword(t *testing.T) {
	tests := map[string]struct {
		edit func(*secretv1.Password, *corev1.Secret)
		// want is the beginning of the event, or "" if the password stays.
		want string
	}{
		"nothing has happened":   {edit: func(*secretv1.Password, *corev1.Secret) {}},
		"its label was removed":  {edit: func(_ *secretv1.Password, secret *corev1.Secret) { secret.Labels = nil }},
		"it was edited":          {edit: func(_ *secretv1.Password, secret *corev1.Secret) { secret.Data["password"] = []byte(otherPass) }, want: "Warning Edited"},
		"the policy has changed": {edit: func(password *secretv1.Password, _ *corev1.Secret) { password.Spec.Policy.Length = 30 }, want: "Normal PolicyChanged"},
		"a rotation is due": {edit: func(password *secretv1.Password, _ *corev1.Secret) {
			password.Spec.Rotation = &secretv1.Rotation{After: "1h"}
		}, want: "Normal Rotated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			password, secret := storedPassword(), sealedSecret(t)
			secret.Data["user"], secret.Annotations["note"] = []byte("shop"), "theirs"
			test.edit(password, secret)
			reconciler := testReconciler(t, interceptor.Funcs{}, secret)
			before := secretOf(t, reconciler)
			_, err := reconciler.ensureSecret(t.Context(), password)
			g.Expect(err).NotTo(HaveOccurred())

			after := secretOf(t, reconciler)
			replaced := string(after.Data["password"]) != string(before.Data["password"])
			g.Expect(replaced).To(Equal(test.want != ""), "there must be a new password if there is a reason for one, and otherwise not, see reasonToGenerate in signature.go and ensureSecret in secret.go")
			g.Expect(eventOf(reconciler)).To(HavePrefix(test.want), "see announceSecret in secret.go")
			made, intact := signedAt(after)
			g.Expect(intact).To(BeTrue(), "the Secret should be signed, see ensureSecret in secret.go")
			g.Expect(made.Equal(noon)).To(Equal(test.want == ""), "the annotation should hold the time when the password was made")
			g.Expect(after.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "password-operator"), "see patchSecret in secret.go")
			g.Expect(after.Data).To(HaveKeyWithValue("user", []byte("shop")), "other keys must stay")
			g.Expect(after.Annotations).To(HaveKeyWithValue("note", "theirs"), "other annotations must stay")
		})
	}
}

// Without an optimistic lock, the patch would overwrite a change that someone has made since the Secret was read.
func TestPatchSecretIsRefusedIfTheSecretHasChanged(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{}, sealedSecret(t))
	found := secretOf(t, reconciler)
	changed := found.DeepCopy()
	changed.Data["password"] = []byte(otherPass)
	g.Expect(reconciler.Update(t.Context(), changed)).To(Succeed())
	desired := found.DeepCopy()
	sign(desired, storedPassword().Spec.Policy, pass, noon)
	returned, err := reconciler.patchSecret(t.Context(), storedPassword(), found, desired, &generateReason{})
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the patch should have an optimistic lock, see patchSecret in secret.go; found: %v", err)
	asFound := equality.Semantic.DeepEqual(returned, found) // Gomega prints what it compares
	g.Expect(asFound).To(BeTrue(), "after a failed patch, patchSecret in secret.go must return the Secret as found")
}

// The API server has the Secret, but the cache doesn't.
func TestFindSecretAsksTheAPIServer(t *testing.T) {
	foreign := sealedSecret(t)
	foreign.OwnerReferences = nil
	for name, test := range map[string]struct {
		secret   *corev1.Secret
		readData bool
	}{
		"its own":        {secret: sealedSecret(t), readData: true},
		"someone else's": {secret: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			readData := false
			reconciler := testReconciler(t, interceptor.Funcs{})
			reconciler.APIReader = testReconciler(t, interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				_, whole := object.(*corev1.Secret)
				readData = readData || whole
				return reader.Get(ctx, key, object, options...)
			}}, test.secret)
			found, err := reconciler.findSecret(t.Context(), storedPassword())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).NotTo(BeNil(), "the cache lacks the Secret, but the API server has it, see findSecret in secret.go")
			g.Expect(found.Name).To(Equal("database"))
			g.Expect(readData).To(Equal(test.readData), "findSecret must read the data of the Password's own Secret, and not of other people's, see lookUp in secret.go")
			g.Expect(found.Data != nil).To(Equal(test.readData))
		})
	}
}
