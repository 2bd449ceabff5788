package main

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	applyv1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/generated/applyconfiguration/example/v1alpha1"
)

// +kubebuilder:rbac:groups=example.com,resources=foos/status,verbs=patch

// observedStatus returns the status of a Foo that has its Deployment.
//
//workshop:step 2.11a
func observedStatus(foo *examplev1alpha1.Foo, deployment *appsv1.Deployment) *examplev1alpha1.FooStatus {
	status := newStatus(foo)
	//workshop:step 2.11b
	if isUndecided(foo, deployment) {
		return status
	}
	available, wanted := deployment.Status.AvailableReplicas, foo.Spec.Replicas
	status.Replicas, status.AvailableReplicas = deployment.Status.Replicas, available
	if isRolledOut(deployment, wanted) {
		setReady(status, metav1.ConditionTrue, examplev1alpha1.ReasonDeploymentAvailable,
			fmt.Sprintf("Deployment %q has %d of %d replicas available", deployment.Name, available, wanted))
		return status
	}
	//workshop:step 2.11b
	if problem := stalled(deployment); problem != "" {
		setReady(status, metav1.ConditionFalse, examplev1alpha1.ReasonDeploymentStalled,
			fmt.Sprintf("Deployment %q makes no progress: %s", deployment.Name, problem))
		return status
	}
	setReady(status, metav1.ConditionFalse, examplev1alpha1.ReasonDeploymentProgressing,
		fmt.Sprintf("Deployment %q is rolling out: %d of %d replicas are available", deployment.Name, available, wanted))
	return status
}

// isUndecided reports whether the Deployment's status is too old to rely on: the Foo was ready and has not changed,
// but the Deployment controller has observed an earlier generation, and not yet the latest. A new generation need not
// affect the pods: a changed annotation also causes one. The Deployment's next status queues the Foo again.
//
//workshop:step 2.11b
func isUndecided(foo *examplev1alpha1.Foo, deployment *appsv1.Deployment) bool {
	observed := deployment.Status.ObservedGeneration
	return 0 < observed && observed < deployment.Generation && foo.Status.ObservedGeneration == foo.Generation &&
		meta.IsStatusConditionTrue(foo.Status.Conditions, examplev1alpha1.ConditionReady)
}

// blockedStatus returns the status of a blocked Foo. The Deployment is nil if the Foo can't have it now. Otherwise the Foo
// has it, but can't get rid of one with an earlier name.
//
//workshop:step 2.11b
func blockedStatus(foo *examplev1alpha1.Foo, deployment *appsv1.Deployment, blocker *blocker) *examplev1alpha1.FooStatus {
	status := newStatus(foo)
	status.Replicas, status.AvailableReplicas = 0, 0
	if deployment != nil {
		status.Replicas, status.AvailableReplicas = deployment.Status.Replicas, deployment.Status.AvailableReplicas
	}
	setReady(status, metav1.ConditionFalse, blocker.reason, blocker.message)
	return status
}

// newStatus copies the Foo's status, so that conditions keep their transition times, and sets the fields that don't
// depend on the Deployment.
//
//workshop:step 2.11a
func newStatus(foo *examplev1alpha1.Foo) *examplev1alpha1.FooStatus {
	status := foo.Status.DeepCopy()
	status.ObservedGeneration = foo.Generation
	status.Selector = labels.FormatLabels(selectorLabels(foo))
	return status
}

//workshop:step 2.11a
func setReady(status *examplev1alpha1.FooStatus, ready metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               examplev1alpha1.ConditionReady,
		Status:             ready,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: status.ObservedGeneration,
	})
}

// isRolledOut reports whether the Deployment has exactly the desired number of pods, all of them available and with the
// current template. Until the Deployment controller has observed a change, the Deployment's status describes the state
// before it.
//
//workshop:step 2.11a
func isRolledOut(deployment *appsv1.Deployment, replicas int32) bool {
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == replicas && status.Replicas == replicas && status.AvailableReplicas == replicas
}

// stalled returns the Deployment controller's message if that controller has observed the current generation, and
// reports that the rollout makes no progress, or that pods can't be created or deleted. Otherwise, stalled returns "".
//
//workshop:step 2.11b
func stalled(deployment *appsv1.Deployment) string {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return ""
	}
	for _, condition := range deployment.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		late := condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if failed || late {
			return condition.Message
		}
	}
	return ""
}

// reportBlocker writes the blocker into the status. It returns the error from the write or, if there is none, the
// blocker's cause. The sync is retried unless both are nil. The Deployment is nil if the Foo can't have it now.
//
//workshop:step 2.11c
func (c *controller) reportBlocker(ctx context.Context, foo *examplev1alpha1.Foo, deployment *appsv1.Deployment, blocker *blocker) error {
	if err := c.updateStatus(ctx, foo, blockedStatus(foo, deployment, blocker)); err != nil {
		return err
	}
	return blocker.cause
}

// updateStatus writes the status if it has changed.
//
// Server-side apply sends only our fields, so it leaves the conditions of other controllers alone.
// The resource version makes the API server refuse a status that was computed from a
// stale Foo.
//
//workshop:step 2.11c
func (c *controller) updateStatus(ctx context.Context, foo *examplev1alpha1.Foo, status *examplev1alpha1.FooStatus) error {
	if equality.Semantic.DeepEqual(&foo.Status, status) {
		return nil
	}
	ready := meta.FindStatusCondition(status.Conditions, examplev1alpha1.ConditionReady)
	desired := applyv1alpha1.Foo(foo.Name, foo.Namespace).
		WithUID(foo.UID).
		WithResourceVersion(foo.ResourceVersion).
		WithStatus(applyv1alpha1.FooStatus().
			WithReplicas(status.Replicas).
			WithAvailableReplicas(status.AvailableReplicas).
			WithSelector(status.Selector).
			WithObservedGeneration(status.ObservedGeneration).
			WithConditions(applymetav1.Condition().
				WithType(ready.Type).
				WithStatus(ready.Status).
				WithReason(ready.Reason).
				WithMessage(ready.Message).
				WithObservedGeneration(ready.ObservedGeneration).
				WithLastTransitionTime(ready.LastTransitionTime)))
	foos := c.clients.foo.ExampleV1alpha1().Foos(foo.Namespace)
	//workshop:until 2.11d _, err := foos.ApplyStatus(ctx, desired, metav1.ApplyOptions{FieldManager: programName, Force: true})
	//workshop:step 2.11d
	applied, err := foos.ApplyStatus(ctx, desired, metav1.ApplyOptions{FieldManager: programName, Force: true})
	if err != nil {
		return fmt.Errorf("apply the status of Foo %s: %w", klog.KObj(foo), err)
	}
	//workshop:step 2.11d
	c.lastStatus.note(foo, applied)
	//workshop:step 2.13
	c.announce(foo, ready)
	return nil
}

// announce emits an event if the condition's status or reason has changed, but none for the reason
// DeploymentProgressing. Resyncs and restarts change no condition, so they cause no events.
//
//workshop:step 2.13
func (c *controller) announce(foo *examplev1alpha1.Foo, ready *metav1.Condition) {
	before := meta.FindStatusCondition(foo.Status.Conditions, examplev1alpha1.ConditionReady)
	if before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	switch ready.Reason {
	case examplev1alpha1.ReasonDeploymentAvailable:
		c.recorder.Eventf(foo, nil, corev1.EventTypeNormal, eventSynced, actionSync, "%s", ready.Message)
	case examplev1alpha1.ReasonErrResourceExists, examplev1alpha1.ReasonDeploymentRefused, examplev1alpha1.ReasonDeploymentStalled:
		c.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, actionSync, "%s", ready.Message)
	}
}

// staleVersions remembers, for each Foo, the resource version from before our last
// status write. While the cache shows that version, a status would be computed from a
// stale Foo, and the API server would refuse it with a conflict. Waiting for the event
// of the newer version, which queues the Foo again, saves that request and its retry.
type staleVersions struct {
	mutex    sync.Mutex
	versions map[cache.ObjectName]string
}

//workshop:step 2.11d
func (s *staleVersions) note(before, after *examplev1alpha1.Foo) {
	if before.ResourceVersion == after.ResourceVersion {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.versions == nil {
		s.versions = map[cache.ObjectName]string{}
	}
	s.versions[cache.MetaObjectToName(before)] = before.ResourceVersion
}

//workshop:step 2.11d
func (s *staleVersions) isStale(foo *examplev1alpha1.Foo) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.versions[cache.MetaObjectToName(foo)] == foo.ResourceVersion
}

//workshop:step 2.11d
func (s *staleVersions) forget(key cache.ObjectName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.versions, key)
}
