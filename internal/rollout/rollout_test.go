package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/internal/kube"
)

const namespace, name = "foo-system", "foo"

var labels = map[string]string{"app": "foo"}

// deployed returns a Deployment with two new pods, of which the given number are ready.
func deployed(ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "deployment", Generation: 2, Annotations: map[string]string{"deployment.kubernetes.io/revision": "2"}},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: ready},
	}
}

// replicaSet returns the ReplicaSet of the Deployment for a revision.
func replicaSet(revision string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "foo-" + revision, UID: types.UID("replicaset-" + revision), Labels: labels,
		Annotations:     map[string]string{"deployment.kubernetes.io/revision": revision},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: name, UID: "deployment", Controller: new(true)}},
	}}
}

// pod returns a pod of a revision. The pod's container is in the state Waiting, with the given reason and message.
func pod(revision, reason, message string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "foo-" + revision + "-x", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "foo-" + revision, UID: types.UID("replicaset-" + revision), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "worker"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "manager", Image: "foo:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}},
	}
}

// cluster returns a function that answers requests with these objects.
func cluster(objects ...runtime.Object) kube.Get {
	kinds := map[string]string{
		"/apis/apps/v1/namespaces/foo-system/deployments": "Deployment",
		"/apis/apps/v1/namespaces/foo-system/replicasets": "ReplicaSet",
		"/api/v1/namespaces/foo-system/pods":              "Pod",
	}
	return func(_ context.Context, path string) ([]byte, error) {
		kind, found := kinds[path]
		if !found {
			return []byte(path + "\n"), nil // the log of the container
		}
		items := slices.DeleteFunc(slices.Clone(objects), func(each runtime.Object) bool {
			return each.GetObjectKind().GroupVersionKind().Kind != kind
		})
		return json.Marshal(map[string]any{"items": items})
	}
}

// wait runs a Waiter against these objects with a fake clock. Then it calls check with the Waiter's error, the time
// that the wait took by that clock, and the Waiter's output.
func wait(t *testing.T, check func(g Gomega, err error, took time.Duration, out string), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		waiter := Waiter{Get: cluster(objects...), Namespace: namespace, Name: name, Limit: 4 * time.Minute, Out: out}
		began := time.Now()
		err := waiter.Wait(t.Context())
		check(NewWithT(t), err, time.Since(began), out.String())
	})
}

func TestWaitUntilDone(t *testing.T) {
	wait(t, func(g Gomega, err error, took time.Duration, out string) {
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(took).To(BeZero())
		g.Expect(out).To(Equal("deployment foo: 2 of 2 pods are new and ready\n"))
	}, deployed(2), replicaSet("2"))
}

func TestWaitGivesUpWhenAPodCannotStart(t *testing.T) {
	crashing := pod("2", "CrashLoopBackOff", "back-off 10s")
	crashing.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	// The second container has a different problem, which must not be confused with the first.
	both := pod("2", "InvalidImageName", "couldn't parse")
	both.Status.ContainerStatuses = append(both.Status.ContainerStatuses, crashing.Status.ContainerStatuses[0])
	both.Status.ContainerStatuses[1].Name = "proxy"
	refused := deployed(0)
	refused.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "pods \"foo\" is forbidden: violates PodSecurity\nmore"}}
	cases := map[string]struct {
		objects []runtime.Object
		want    []string
	}{
		"an image that no registry has": {[]runtime.Object{deployed(0), pod("2", "ImagePullBackOff", "Back-off pulling")},
			[]string{"node worker can't get the image foo:v1 (ImagePullBackOff)", "make stage-N kind-load IMG=foo:v1"}},
		"a first try that failed":           {[]runtime.Object{deployed(0), pod("2", "ErrImagePull", "not found")}, []string{"(ErrImagePull)"}},
		"an invalid image name":             {[]runtime.Object{deployed(0), pod("2", "InvalidImageName", "couldn't parse")}, []string{`"foo:v1" is not a valid image name`}},
		"a container that can't be created": {[]runtime.Object{deployed(0), pod("2", "CreateContainerConfigError", "secret \"token\" not found")}, []string{"CreateContainerConfigError", `secret "token" not found`}},
		"a container that crashes": {[]runtime.Object{deployed(0), crashing},
			[]string{"container manager of pod foo-2-x keeps exiting (exit status 1, Error)", "its last message: /api/v1/namespaces/foo-system/pods/foo-2-x/log?container=manager&previous=true&tailLines=1"}},
		"two containers that can't start":  {[]runtime.Object{deployed(0), both}, []string{`"foo:v1" is not a valid image name: choose another IMG`}},
		"a pod that the namespace refuses": {[]runtime.Object{refused}, []string{"the cluster refuses the pods", "violates PodSecurity"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wait(t, func(g Gomega, err error, took time.Duration, _ string) {
				for _, want := range c.want {
					g.Expect(err).To(MatchError(ContainSubstring(want)))
				}
				g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must be one line")
				g.Expect(strings.Contains(err.Error(), "its last message")).To(Equal(strings.Contains(err.Error(), "keeps exiting")), "only a container that has run has a last message")
				g.Expect(took).To(Equal(failureTimeout), "the wait must end within seconds, not at the limit")
			}, append(c.objects, replicaSet("2"))...)
		})
	}
}

func TestWaitIgnoresEarlierPods(t *testing.T) {
	wait(t, func(g Gomega, err error, took time.Duration, _ string) {
		g.Expect(err).To(MatchError(And(ContainSubstring("not done after 4m0s"), Not(ContainSubstring("image")))))
		g.Expect(took).To(Equal(4 * time.Minute))
	}, deployed(1), replicaSet("1"), replicaSet("2"), pod("1", "ImagePullBackOff", ""))
}

func TestWaitToleratesTemporaryProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		before := cluster(deployed(0), replicaSet("2"), pod("2", "CreateContainerConfigError", "secret not found"))
		after := cluster(deployed(2), replicaSet("2"))
		began := time.Now()
		get := func(ctx context.Context, path string) ([]byte, error) {
			if time.Since(began) < failureTimeout {
				return before(ctx, path)
			}
			return after(ctx, path)
		}
		waiter := Waiter{Get: get, Namespace: namespace, Name: name, Limit: time.Minute, Out: &bytes.Buffer{}}
		g.Expect(waiter.Wait(t.Context())).To(Succeed())
	})
}

func TestWaitSaysWhyItFailed(t *testing.T) {
	unscheduled := pod("2", "", "")
	unscheduled.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient cpu."}}}
	unready := pod("2", "", "")
	unready.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	behind := deployed(2)
	behind.Generation = 3
	cases := map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"no node":            {[]runtime.Object{deployed(0), unscheduled}, "no node can run pod foo-2-x: 0/1 nodes are available"},
		"a probe that fails": {[]runtime.Object{deployed(0), unready}, "container manager of pod foo-2-x is running, but not ready"},
		"no controller":      {[]runtime.Object{behind}, "not all of its pods are new and ready"},
		"no Deployment":      {nil, "namespace foo-system has no deployment foo: `make deploy` creates it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wait(t, func(g Gomega, err error, _ time.Duration, _ string) {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			}, append(c.objects, replicaSet("2"))...)
		})
	}
}

func TestAnInterruptedWaitSaysThatTheRolloutContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 10*time.Second)
		defer interrupt()
		waiter := Waiter{Get: cluster(deployed(0), replicaSet("2")), Namespace: namespace, Name: name, Limit: time.Minute, Out: &bytes.Buffer{}}
		NewWithT(t).Expect(waiter.Wait(ctx)).To(MatchError("interrupted: the rollout of deployment foo continues in the cluster"))
	})
}
