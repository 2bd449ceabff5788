//workshop:given 3.3a

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// testReconciler returns a reconciler with an in-memory client, which contains the objects. The functions in faults
// replace the client's methods, for example to make a call fail.
func testReconciler(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *GuestbookReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(webappv1.AddToScheme(scheme)).To(Succeed())
	writer := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&webappv1.Guestbook{}).WithObjects(objects...).WithInterceptorFuncs(faults).Build()
	return &GuestbookReconciler{Client: writer, Scheme: scheme, Recorder: events.NewFakeRecorder(100)}
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// newGuestbook returns storedGuestbook without its resource version, so that the in-memory client sets one.
func newGuestbook() *webappv1.Guestbook {
	guestbook := storedGuestbook()
	guestbook.ResourceVersion = ""
	return guestbook
}

func newSettings() *corev1.ConfigMap {
	settings := storedSettings()
	settings.ResourceVersion, settings.ManagedFields = "", nil
	return settings
}

// recordWrites returns a list of all creates and patches, in order, and the functions that fill it.
func recordWrites() (written *[]string, faults interceptor.Funcs) {
	written = new([]string)
	note := func(verb string, object client.Object) {
		*written = append(*written, fmt.Sprintf("%s %T", verb, object))
	}
	return written, interceptor.Funcs{
		Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
			note("create", object)
			return writer.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, writer client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			note("patch", object)
			return writer.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, writer client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			note("patch "+name+" of", object)
			return writer.SubResource(name).Patch(ctx, object, patch, options...)
		},
	}
}

func failCreate(err error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
	}
}

// recordLog returns a context whose logger writes to the returned buffer.
func recordLog(t *testing.T) (context.Context, *bytes.Buffer) {
	logged := &bytes.Buffer{}
	return logf.IntoContext(t.Context(), zap.New(zap.WriteTo(logged))), logged
}

func TestReconcileReturns(t *testing.T) {
	outage := apierrors.NewInternalError(errors.New("etcd"))
	unreadable := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return outage
		},
	}
	//workshop:step 3.5m
	unlistable := interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return outage },
	}
	//workshop:step 3.5h
	terminating := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("the namespace is being terminated"))
	//workshop:step 3.5h
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		wantErr error
	}{
		"nothing if the Guestbook does not exist":     {},
		"an error if the Guestbook can't be read":     {faults: unreadable, objects: []client.Object{newGuestbook()}, wantErr: outage},
		"an error if the Deployment can't be created": {faults: failCreate(outage), objects: []client.Object{newGuestbook(), newSettings()}, wantErr: outage}, //workshop:step 3.5f
		"an error if the pods can't be listed":        {faults: unlistable, objects: []client.Object{newGuestbook(), newSettings()}, wantErr: outage},         //workshop:step 3.5m
		"nothing if the namespace is terminating":     {faults: failCreate(terminating), objects: []client.Object{newGuestbook(), newSettings()}},             //workshop:step 3.5h
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			result, err := testReconciler(t, test.faults, test.objects...).Reconcile(t.Context(), requestFor(newGuestbook()))
			g.Expect(result).To(BeZero())
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "see Reconcile in guestbook_controller.go")
				return
			}
			g.Expect(err).To(MatchError(test.wantErr), "the queue must retry, see Reconcile in guestbook_controller.go")
		})
	}
}

func TestReconcileLogs(t *testing.T) {
	g := NewWithT(t)
	ctx, logged := recordLog(t)
	_, err := testReconciler(t, interceptor.Funcs{}, newGuestbook(), newSettings()).Reconcile(ctx, requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred())
	//workshop:until 3.5f g.Expect(logged.String()).To(MatchRegexp(`Reconciling.*\b2\b|Created`), "Reconcile must log Reconciling with the size, which is 2, to the logger in ctx, see Reconcile in guestbook_controller.go")
	//workshop:step 3.5f
	g.Expect(logged.String()).NotTo(ContainSubstring("Reconciling"), "the log must say only what the controller has written, so remove this line, see Reconcile in guestbook_controller.go")
}

func TestReconcileLeavesADeletedGuestbookAlone(t *testing.T) {
	g := NewWithT(t)
	guestbook := newGuestbook()
	guestbook.DeletionTimestamp, guestbook.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
	written, recording := recordWrites()
	ctx, logged := recordLog(t)
	_, err := testReconciler(t, recording, guestbook, newSettings()).Reconcile(ctx, requestFor(guestbook))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(logged.String()).NotTo(ContainSubstring("Reconciling"), "there is nothing to do for a Guestbook that is being deleted, see Reconcile in guestbook_controller.go")
	g.Expect(*written).To(BeEmpty(), "see Reconcile in guestbook_controller.go")
}

func TestReconcileWritesOnce(t *testing.T) {
	g := NewWithT(t)
	written, recording := recordWrites()
	reconciler := testReconciler(t, recording, newGuestbook(), newSettings())
	_, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*written).To(Equal([]string{"create *v1.Deployment", "create *v1.Service", "patch status of *v1.Guestbook"}))
	guestbook := newGuestbook()
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
	g.Expect(guestbook.Status.Conditions).To(ConsistOf(HaveField("Reason", webappv1.ReasonProgressing)), "there are no pods yet, so the reason must be Progressing, see report in guestbook_controller.go")

	*written = nil
	_, err = reconciler.Reconcile(t.Context(), requestFor(guestbook))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*written).To(BeEmpty(), "nothing has changed, so nothing must be written, see updateStatus in guestbook_controller.go and patch in children.go")
}

func TestStatusPatchHasALock(t *testing.T) {
	g := NewWithT(t)
	guestbook := storedGuestbook()
	sent := ""
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			g.Expect(patch.Type()).To(Equal(types.MergePatchType), "strategic merge patches are for built-in kinds only, see updateStatus in guestbook_controller.go")
			data, err := patch.Data(object)
			g.Expect(err).NotTo(HaveOccurred())
			sent = string(data)
			return nil
		},
	})
	g.Expect(reconciler.updateStatus(t.Context(), guestbook, nil, newCondition(metav1.ConditionFalse, webappv1.ReasonProgressing, "rolling"))).To(Succeed())
	g.Expect(sent).To(ContainSubstring(`"resourceVersion":"30"`), "the API server must refuse a status that was computed from an old Guestbook, see updateStatus in guestbook_controller.go")
	g.Expect(sent).NotTo(ContainSubstring(`"spec"`), "the patch must not contain the spec")
}

func TestNoEventWithoutAStatus(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(webappv1.SchemeGroupVersion.WithResource("guestbooks").GroupResource(), "web", nil)
		},
	})
	available := newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all there")
	g.Expect(reconciler.updateStatus(t.Context(), storedGuestbook(), nil, available)).To(MatchError(apierrors.IsConflict, "IsConflict"))
	g.Expect(reconciler.Recorder.(*events.FakeRecorder).Events).To(BeEmpty(), "each retry would emit the Event again, see updateStatus in guestbook_controller.go")
}

func TestReconcileFinishesWhatHasBegun(t *testing.T) {
	g := NewWithT(t)
	type key struct{}
	stopping, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	stop()
	reconciler := testReconciler(t, interceptor.Funcs{
		Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
			_, bounded := ctx.Deadline()
			g.Expect(bounded).To(BeTrue(), "a Reconcile that hangs must end, see reconcileTimeout in guestbook_controller.go")
			g.Expect(ctx.Value(key{})).To(Equal("kept"), "the context also carries the logger, see Reconcile in guestbook_controller.go")
			return errors.Join(ctx.Err(), writer.Create(ctx, object, options...))
		},
	}, newGuestbook(), newSettings())
	_, err := reconciler.Reconcile(stopping, requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred(), "the manager's signal to stop must not end a Reconcile halfway, see Reconcile in guestbook_controller.go")
}

func TestBlockedChildStopsNoOther(t *testing.T) {
	refusing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
				return err
			}
			return writer.Create(ctx, object, options...)
		}}
	}
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	unreadable := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isConfigMap := object.(*corev1.ConfigMap); isConfigMap {
				return err
			}
			return reader.Get(ctx, key, object, options...)
		}}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("quota"))
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		// wantReason is the reason of the condition Ready, or "" if the status must not be written.
		wantReason string
		wantErr    error
	}{
		"the settings can't be read":     {faults: unreadable(outage), objects: []client.Object{newSettings()}, wantErr: outage},
		"the Deployment's name is taken": {objects: []client.Object{newSettings(), conflicting}, wantReason: webappv1.ReasonDeploymentTaken},
		"the Deployment is refused":      {faults: refusing(forbidden), objects: []client.Object{newSettings()}, wantReason: webappv1.ReasonRefused, wantErr: forbidden},
		"the Deployment fails":           {faults: refusing(outage), objects: []client.Object{newSettings()}, wantErr: outage},
		"there are no settings":          {wantReason: webappv1.ReasonConfigMapNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			guestbook := newGuestbook()
			reconciler := testReconciler(t, test.faults, append(test.objects, guestbook)...)
			_, err := reconciler.Reconcile(t.Context(), requestFor(guestbook))
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "a watch event will queue the Guestbook again")
			} else {
				g.Expect(err).To(MatchError(test.wantErr))
			}
			g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), &corev1.Service{})).To(Succeed(), "the Service must not depend on the Deployment, see applyChildren in children.go")
			g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
			announced := reconciler.Recorder.(*events.FakeRecorder).Events
			if test.wantReason == "" {
				g.Expect(guestbook.Status.Conditions).To(BeEmpty(), "if there is an error and no blocker, the status must not be written, see reconcile in guestbook_controller.go")
				g.Expect(announced).To(BeEmpty())
				return
			}
			g.Expect(guestbook.Status.Conditions).To(ConsistOf(HaveField("Reason", test.wantReason)), "the status must say what blocks the child, see reconcile and report in guestbook_controller.go")
			g.Expect(announced).To(Receive(HavePrefix("Warning "+test.wantReason)), "updateStatus in guestbook_controller.go must call announce") //workshop:step 3.5n
		})
	}
}

// If the Deployment is blocked and the Service fails, the status reports the blocker, and the queue retries the
// request.
func TestReconcileReturnsErrorsDespiteABlocker(t *testing.T) {
	g := NewWithT(t)
	outage := apierrors.NewInternalError(errors.New("etcd"))
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	reconciler := testReconciler(t, failCreate(outage), newGuestbook(), newSettings(), conflicting)
	guestbook := newGuestbook()
	_, err := reconciler.Reconcile(t.Context(), requestFor(guestbook))
	g.Expect(err).To(MatchError(outage))
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(guestbook), guestbook)).To(Succeed())
	g.Expect(guestbook.Status.Conditions).To(ConsistOf(HaveField("Reason", webappv1.ReasonDeploymentTaken)), "there is a blocker, so the status must report it, see reconcile in guestbook_controller.go")
}

func TestListPods(t *testing.T) {
	g := NewWithT(t)
	running, finished, other, elsewhere := storedPod("running", 0), storedPod("finished", 0), storedPod("other", 0), storedPod("elsewhere", 0)
	finished.Status.Phase = corev1.PodSucceeded
	other.Labels = map[string]string{instanceLabel: "other"}
	elsewhere.Namespace = "bank"
	var objects []client.Object
	for _, pod := range []*corev1.Pod{&running, &finished, &other, &elsewhere} {
		pod.ResourceVersion = ""
		objects = append(objects, pod)
	}
	pods, err := testReconciler(t, interceptor.Funcs{}, objects...).listPods(t.Context(), storedGuestbook())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods).To(ConsistOf(HaveField("Name", "running")), "see listPods in guestbook_controller.go")
}
