package greeting

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcileTimeout bounds a single call to Reconcile.
const reconcileTimeout = 15 * time.Second

// errNameTaken means that the ConfigMap exists, and that this Greeting doesn't control it.
var errNameTaken = errors.New("exists, and this Greeting does not control it: delete it, or create the Greeting under another name")

// Reconciler keeps a ConfigMap for each Greeting.
// +kubebuilder:object:generate=false
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=hello.example.com,resources=greetings,verbs=list;watch
// +kubebuilder:rbac:groups=hello.example.com,resources=greetings/finalizers,verbs=update

// Reconcile brings one Greeting up to date. It may be called any number of times.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager cancels ctx when it stops, but a call that has begun should still finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	greeting := &Greeting{}
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the ConfigMap, which has an owner reference
	}
	err := r.ensureConfigMap(ctx, greeting)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // the Greeting is about to be deleted as well
	}
	return ctrl.Result{}, errors.Join(err, r.updateStatus(ctx, greeting, err))
}

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;patch

// ensureConfigMap creates the ConfigMap, or corrects its text. It leaves all other keys alone. If the ConfigMap exists,
// but the Greeting does not control it, the error wraps errNameTaken.
func (r *Reconciler) ensureConfigMap(ctx context.Context, greeting *Greeting) error {
	wanted := newConfigMap(greeting)
	if err := ctrl.SetControllerReference(greeting, wanted, r.Scheme()); err != nil {
		return fmt.Errorf("set the owner of ConfigMap %s: %w", wanted.Name, err)
	}
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Create(ctx, wanted)
	case err != nil:
	case !metav1.IsControlledBy(found, greeting):
		err = errNameTaken
	case found.Data[textKey] != wanted.Data[textKey]:
		changed := found.DeepCopy()
		if changed.Data == nil {
			changed.Data = map[string]string{}
		}
		changed.Data[textKey] = wanted.Data[textKey]
		err = r.Patch(ctx, changed, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", wanted.Name, err)
	}
	return nil
}

// +kubebuilder:rbac:groups=hello.example.com,resources=greetings/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// updateStatus patches the status if it changes, and then emits an Event if the reason has changed.
func (r *Reconciler) updateStatus(ctx context.Context, greeting *Greeting, problem error) error {
	ready, known := readyCondition(greeting, problem)
	if !known {
		return nil // a transient error: the request is retried, and the status stays as it is
	}
	before := greeting.DeepCopy()
	last := meta.FindStatusCondition(before.Status.Conditions, ConditionReady)
	greeting.Status.ObservedGeneration = greeting.Generation
	meta.SetStatusCondition(&greeting.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, greeting.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, greeting, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the status of Greeting %s: %w", client.ObjectKeyFromObject(greeting), err)
	}
	if last == nil || last.Reason != ready.Reason {
		eventType := corev1.EventTypeNormal
		if problem != nil {
			eventType = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(greeting, nil, eventType, ready.Reason, "Reconcile", "%s", ready.Message)
	}
	return nil
}

// readyCondition computes the condition Ready. For an error that reports neither a taken name nor a refusal, known is
// false.
func readyCondition(greeting *Greeting, problem error) (ready metav1.Condition, known bool) {
	ready = metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: greeting.Generation}
	switch {
	case problem == nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, ReasonGreeted, "the ConfigMap holds the text"
		return ready, true
	case errors.Is(problem, errNameTaken):
		ready.Reason = ReasonNameTaken
	case apierrors.IsForbidden(problem), apierrors.IsInvalid(problem):
		ready.Reason = ReasonRefused
	default:
		return metav1.Condition{}, false
	}
	ready.Message = problem.Error()
	return ready, true
}

// SetupWithManager makes the manager call Reconcile when a Greeting or its ConfigMap changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Run runs the operator until ctx ends.
func Run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	reconciler := &Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("greeting")}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the controller: %w", err)
	}
	return mgr.Start(ctx)
}
