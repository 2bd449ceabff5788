package main

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	foofake "example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned/fake"
)

// syncer is a controller with in-memory clients for storedFoo() and some Deployments. Its caches contain the same
// Deployments, and the Foos of newHandlers.
type syncer struct {
	*controller
	kube *kubefake.Clientset
	foos *foofake.Clientset
	// version is the resource version that a write of the status returns.
	version string
	// reasons lists the condition's reasons in the statuses written so far, and replicas the numbers of replicas.
	reasons  []string
	replicas []int32
}

func newSyncer(g Gomega, t *testing.T, deployments []*appsv1.Deployment) *syncer {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byOwner: indexByOwner, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	var objects []runtime.Object
	for _, deployment := range deployments {
		g.Expect(index.Add(deployment)).To(Succeed())
		objects = append(objects, deployment.DeepCopy())
	}
	s := &syncer{controller: newHandlers(t), kube: kubefake.NewClientset(objects...), foos: foofake.NewSimpleClientset(storedFoo()), version: storedFoo().ResourceVersion}
	s.deploymentIndex, s.deployments = index, appslisters.NewDeploymentLister(index)
	s.clients, s.recorder = &clients{kube: s.kube, foo: s.foos}, events.NewFakeRecorder(10)
	s.foos.PrependReactor("patch", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
		foo := storedFoo()
		g.Expect(json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), foo)).To(Succeed())
		foo.ResourceVersion = s.version
		s.reasons = append(s.reasons, foo.Status.Conditions[0].Reason)
		s.replicas = append(s.replicas, foo.Status.Replicas)
		return true, foo, nil
	})
	return s
}

// verbs returns the verbs of the requests for Deployments.
func verbs(kube *kubefake.Clientset) []string {
	var verbs []string
	for _, action := range kube.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	return verbs
}

func TestSyncCreatesTheDeployment(t *testing.T) {
	g := NewWithT(t)
	s := newSyncer(g, t, nil)
	g.Expect(s.sync(t.Context(), cache.MetaObjectToName(storedFoo()))).To(Succeed())
	g.Expect(s.kube.Actions()).To(HaveLen(1), "the only write must be the creation of the Deployment that the cache does not show")
	create, is := s.kube.Actions()[0].(clienttesting.CreateActionImpl)
	g.Expect(is).To(BeTrue())
	g.Expect(create.GetObject()).To(Equal(newDeployment(storedFoo())))
	g.Expect(create.GetCreateOptions().FieldManager).To(Equal(programName),
		"the field manager of the create must be programName, see createDeployment in sync.go")

	err := s.sync(t.Context(), cache.MetaObjectToName(storedFoo()))
	g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(),
		"the cache does not show the new Deployment yet, so the next create fails, and sync must return that error, wrapped with %%w: %v", err)
}

func TestEnsureDeploymentRepairs(t *testing.T) {
	scaled := storedDeployment()
	scaled.Spec.Replicas = new(int32(9))
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       []string
	}{
		"a Deployment that another client has scaled": {deployment: scaled, want: []string{"patch"}},
		"nothing if nothing differs":                  {deployment: storedDeployment()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSyncer(g, t, []*appsv1.Deployment{test.deployment})
			repaired, err := s.ensureDeployment(t.Context(), storedFoo())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(verbs(s.kube)).To(Equal(test.want), "ensureDeployment must send these requests and no others, see sync.go")
			for _, patch := range s.kube.Actions() {
				g.Expect(patch).To(HaveField("PatchOptions.FieldManager", programName),
					"the field manager of the patch must be programName, see repairDeployment in sync.go")
			}
			g.Expect(repaired).To(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(3))), "ensureDeployment must return the Deployment as it is after the repair")
		})
	}
}

func TestEnsureDeploymentReturnsABlocker(t *testing.T) {
	g := NewWithT(t)
	foreign := storedDeployment()
	foreign.OwnerReferences = nil
	foreign.Spec.Replicas = new(int32(9))
	s := newSyncer(g, t, []*appsv1.Deployment{foreign})
	_, err := s.ensureDeployment(t.Context(), storedFoo())
	_, blocked := errors.AsType[*blocker](err)
	g.Expect(blocked).To(BeTrue(), "the Deployment is someone else's, see ensureDeployment in sync.go")
	g.Expect(s.kube.Actions()).To(BeEmpty(), "someone else's Deployment must be left alone")
}

func TestEnsureDeploymentReturnsARefusal(t *testing.T) {
	scaled := storedDeployment()
	scaled.Spec.Replicas = new(int32(9))
	for name, deployments := range map[string][]*appsv1.Deployment{"of the create": nil, "of the patch": {scaled}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSyncer(g, t, deployments)
			forbidden := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("quota"))
			s.kube.PrependReactor("*", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
			_, err := s.ensureDeployment(t.Context(), storedFoo())
			refusal, blocked := errors.AsType[*blocker](err)
			g.Expect(blocked).To(BeTrue(), "the API server's refusal must become a blocker, see createDeployment and repairDeployment in sync.go; found %v", err)
			g.Expect(refusal.reason).To(Equal(examplev1alpha1.ReasonDeploymentRefused))
			g.Expect(refusal.message).To(And(ContainSubstring(`"web"`), ContainSubstring("quota")), "the message must name the Deployment, and say why it is refused")
			g.Expect(refusal.cause).To(MatchError(forbidden), "no event will follow, so the blocker needs a cause, which makes the queue retry the sync")
		})
	}
}

// The second sync comes before the watch event for the first sync's write.
func TestSyncWaitsForItsStatus(t *testing.T) {
	g := NewWithT(t)
	deployment := storedDeployment()
	s := newSyncer(g, t, []*appsv1.Deployment{deployment})
	s.version = "31"
	key := cache.MetaObjectToName(storedFoo())
	g.Expect(s.sync(t.Context(), key)).To(Succeed())
	deployment.Status.Replicas = 1
	g.Expect(s.sync(t.Context(), key)).To(Succeed())
	g.Expect(s.reasons).To(HaveLen(1), "the cache doesn't show the first status yet, so sync must not write a second one, see isStale in status.go")
}

func TestSyncDoesNotWriteAnUnchangedStatus(t *testing.T) {
	g := NewWithT(t)
	deployment := storedDeployment()
	s := newSyncer(g, t, []*appsv1.Deployment{deployment})
	foo := storedFoo()
	status := observedStatus(foo, deployment)
	g.Expect(status).NotTo(BeNil(), "see observedStatus in status.go")
	foo.Status = *status
	g.Expect(s.fooIndex.Update(foo)).To(Succeed())
	g.Expect(s.sync(t.Context(), cache.MetaObjectToName(foo))).To(Succeed())
	g.Expect(s.foos.Actions()).To(BeEmpty(), "the status has not changed, so it must not be written, see updateStatus in status.go")
}

// A status that was computed from a stale Foo must not overwrite a newer one, and the status of a deleted Foo must
// not be written to a new Foo of the same name.
func TestSyncAppliesTheStatus(t *testing.T) {
	g := NewWithT(t)
	s := newSyncer(g, t, []*appsv1.Deployment{storedDeployment()})
	foo := storedFoo()
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	foo.Status.Conditions = []metav1.Condition{
		{Type: "Audited", Status: metav1.ConditionTrue},
		{Type: examplev1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "SomeReason", LastTransitionTime: since},
	}
	g.Expect(s.fooIndex.Update(foo)).To(Succeed())
	g.Expect(s.sync(t.Context(), cache.MetaObjectToName(foo))).To(Succeed())
	g.Expect(s.foos.Actions()).To(HaveLen(1), "the status must be written once, see updateStatus in status.go")
	apply, is := s.foos.Actions()[0].(clienttesting.PatchActionImpl)
	g.Expect(is && apply.GetPatchType() == types.ApplyPatchType && apply.GetSubresource() == "status").To(BeTrue(), "write the status with ApplyStatus")
	g.Expect(apply.GetPatchOptions()).To(And(HaveField("FieldManager", programName), HaveField("Force", HaveValue(BeTrue()))),
		"ApplyStatus needs two options: the field manager, and force, which takes over fields of other managers")
	var applied examplev1alpha1.Foo
	g.Expect(json.Unmarshal(apply.GetPatch(), &applied)).To(Succeed())
	g.Expect(applied).To(And(HaveField("UID", foo.UID), HaveField("ResourceVersion", foo.ResourceVersion)),
		"with the UID and the resource version, the API server refuses a status that was computed from a stale or a deleted Foo")
	g.Expect(applied.Status.Conditions).To(ConsistOf(HaveField("Type", examplev1alpha1.ConditionReady)), "leave out the conditions of other controllers")
	g.Expect(applied.Status.Conditions[0].LastTransitionTime.Time).To(BeTemporally("==", since.Time),
		"Ready stays False, so its transition time must stay, too: send the one of the new status")
}

func TestSyncForgetsAFooThatIsGone(t *testing.T) {
	g := NewWithT(t)
	s := newSyncer(g, t, nil)
	foo, newer := storedFoo(), storedFoo()
	newer.ResourceVersion = "31"
	s.lastStatus.note(foo, newer)
	g.Expect(s.fooIndex.Delete(foo)).To(Succeed())
	g.Expect(s.sync(t.Context(), cache.MetaObjectToName(foo))).To(Succeed())
	g.Expect(s.lastStatus.isStale(foo)).To(BeFalse(), "the Foo is gone, and its entry must not stay in memory: call forget, see sync in sync.go")
}

func TestSyncAnnouncesOnlyWrittenStatuses(t *testing.T) {
	g := NewWithT(t)
	foreign := storedDeployment()
	foreign.OwnerReferences = nil
	s := newSyncer(g, t, []*appsv1.Deployment{foreign})
	recorder := events.NewFakeRecorder(10)
	s.recorder = recorder
	conflict := apierrors.NewConflict(examplev1alpha1.Resource("foos"), "front", errors.New("changed"))
	s.foos.PrependReactor("patch", "foos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflict })
	g.Expect(s.sync(t.Context(), cache.MetaObjectToName(storedFoo()))).To(MatchError(conflict))
	g.Expect(recorder.Events).To(BeEmpty(), "the write has failed, and the retry would emit the event again, see updateStatus in status.go")
}

func TestSyncWrites(t *testing.T) {
	changed := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		deployment := storedDeployment()
		change(deployment)
		return deployment
	}
	scaled := changed(func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = new(int32(9)) })
	unowned := changed(func(deployment *appsv1.Deployment) { deployment.OwnerReferences = nil })
	rolledOut := changed(func(deployment *appsv1.Deployment) {
		deployment.Generation = 1
		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	})
	renamed := changed(func(deployment *appsv1.Deployment) { deployment.Name, deployment.UID = "previous", "uid-of-previous" })
	leaving := renamed.DeepCopy()
	leaving.DeletionTimestamp = new(metav1.Now())
	forbidden := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("quota"))
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		deployments []*appsv1.Deployment
		// failure is the error with which every write of a Deployment fails, or nil if the writes succeed.
		failure error
		// stale is true if the API server has a newer Foo than the cache.
		stale bool
		// want lists the verbs of the writes of Deployments, and wantReasons lists the condition's reasons in the
		// writes of the status.
		want, wantReasons []string
		wantErr           error
		// wantReplicas is the number of replicas in a status that reports a refusal.
		wantReplicas int32
	}{
		"there is no Deployment": {want: []string{"create"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentProgressing}},
		"another client has scaled the Deployment": {
			deployments: []*appsv1.Deployment{scaled},
			want:        []string{"patch"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentProgressing},
		},
		"the Deployment has rolled out": {
			deployments: []*appsv1.Deployment{rolledOut}, wantReasons: []string{examplev1alpha1.ReasonDeploymentAvailable},
		},
		"a Deployment of a previous name remains": {
			deployments: []*appsv1.Deployment{rolledOut, renamed},
			want:        []string{"delete"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentAvailable},
		},
		"a Deployment of a previous name is being deleted": {
			deployments: []*appsv1.Deployment{rolledOut, leaving}, wantReasons: []string{examplev1alpha1.ReasonDeploymentAvailable},
		},
		"the deletion is refused": {
			deployments: []*appsv1.Deployment{rolledOut, renamed}, failure: forbidden,
			want: []string{"delete"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentRefused}, wantErr: forbidden, wantReplicas: 3,
		},
		"the deletion fails": {
			deployments: []*appsv1.Deployment{rolledOut, renamed}, failure: outage, want: []string{"delete"}, wantErr: outage,
		},
		"the name of the Deployment may have changed since": {
			deployments: []*appsv1.Deployment{rolledOut, renamed}, stale: true, wantErr: errStaleCache,
		},
		"the Deployment is someone else's": {
			deployments: []*appsv1.Deployment{unowned}, wantReasons: []string{examplev1alpha1.ReasonErrResourceExists},
		},
		"the creation is refused": {
			failure: forbidden,
			want:    []string{"create"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentRefused}, wantErr: forbidden,
		},
		"the patch is refused": {
			deployments: []*appsv1.Deployment{scaled}, failure: forbidden,
			want: []string{"patch"}, wantReasons: []string{examplev1alpha1.ReasonDeploymentRefused}, wantErr: forbidden,
		},
		"the creation fails": {failure: outage, want: []string{"create"}, wantErr: outage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSyncer(g, t, test.deployments)
			if test.failure != nil {
				s.kube.PrependReactor("*", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.failure })
			}
			if test.stale {
				newer := storedFoo()
				newer.Generation++
				g.Expect(s.foos.Tracker().Update(examplev1alpha1.SchemeGroupVersion.WithResource("foos"), newer, newer.Namespace)).To(Succeed())
			}
			err := s.sync(t.Context(), cache.MetaObjectToName(storedFoo()))
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.wantErr), "see sync in sync.go and reportBlocker in status.go")
			}
			g.Expect(verbs(s.kube)).To(Equal(test.want), "sync must send these requests and no others, see sync.go")
			g.Expect(s.reasons).To(Equal(test.wantReasons), "see updateStatus in status.go")
			if slices.Contains(test.wantReasons, examplev1alpha1.ReasonDeploymentRefused) {
				g.Expect(s.replicas).To(Equal([]int32{test.wantReplicas}), "the status must count the replicas of the Deployment if only the deletion of a previous one is refused, and otherwise none, see sync in sync.go")
			}
		})
	}
}
