package trial

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

func TestEntriesOfAnOperatorCountFromTheStartOfTheTrial(t *testing.T) {
	g := NewWithT(t)
	requests := []traffic.Request{
		{Verb: "watch", Resource: "foos", Group: "example.com", Namespace: "a", At: time.Second, Status: 200, Done: true},
		{Verb: "create", Resource: "secrets", Namespace: "a", Name: "b", At: 3 * time.Second, Status: 409, Done: true},
	}
	events := []traffic.Event{
		{Type: apiwatch.Added, Group: "example.com", Resource: "foos", Namespace: "a", Name: "b", Version: "7", At: 2 * time.Second},
		{Type: apiwatch.Deleted, Resource: "nodes", Name: "n", Version: "9", At: 4 * time.Second},
	}
	g.Expect(entriesOf(2, 10*time.Second, requests, events)).To(ConsistOf([]report.Entry{
		{Operator: 2, Seconds: 11, What: "watch foos.example.com", Object: requests[0].Target(), Reply: requests[0].Result()},
		{Operator: 2, Seconds: 12, What: "ADDED foos.example.com", Object: "a/b", Reply: "resource version 7"},
		{Operator: 2, Seconds: 13, What: "create secrets", Object: "a/b", Reply: requests[1].Result(), Injected: true},
		{Operator: 2, Seconds: 14, What: "DELETED nodes", Object: "n", Reply: "resource version 9"},
	}))
}

func TestTimelineShowsWhatTheKitDid(t *testing.T) {
	g := NewWithT(t)
	runner := &Runner{Cluster: &testcluster.Cluster{Admin: fake.NewClientBuilder().Build()}}
	tried := runner.newTrial("drift/a", "spec-a")
	first := &Instance{Tap: traffic.New(), cancel: func(error) {}}
	tried.instances = append(tried.instances, first)
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "spec-a", Name: "b"}}
	admin := tried.Cluster.Admin
	g.Expect(admin.Create(t.Context(), stored.DeepCopy(), client.DryRunAll)).To(Succeed())
	g.Expect(admin.Create(t.Context(), stored)).To(Succeed())
	g.Expect(first.Kill()).To(Succeed())
	g.Expect(admin.Patch(t.Context(), stored, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`)))).To(Succeed())
	second := &Instance{Tap: traffic.New(), cancel: func(error) {}}
	tried.instances = append(tried.instances, second)
	g.Expect(admin.Update(t.Context(), stored)).To(Succeed())
	g.Expect(admin.Delete(t.Context(), stored)).To(Succeed())
	second.Terminate()
	g.Expect(admin.Delete(t.Context(), stored)).NotTo(Succeed())

	var done []string
	last := 0.0
	for _, entry := range tried.timeline() {
		g.Expect(entry.Operator).To(BeZero())
		g.Expect(entry.Seconds).To(BeNumerically(">=", last))
		last = entry.Seconds
		done = append(done, entry.What+" "+entry.Object+" "+entry.Reply)
	}
	g.Expect(done).To(HaveExactElements(
		"start operator 1  ", "create ConfigMap spec-a/b ", "kill operator 1  ", `patch ConfigMap spec-a/b {"data":{"a":"b"}}`,
		"start operator 2  ", "update ConfigMap spec-a/b ", "delete ConfigMap spec-a/b ", "stop operator 2  ",
		`delete ConfigMap spec-a/b configmaps "b" not found`,
	))
}

func TestTimelineLeavesOutHowTheOperatorGetsItsPermissions(t *testing.T) {
	g := NewWithT(t)
	allow := interceptor.Funcs{Create: func(ctx context.Context, next client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if review, isReview := object.(*authorizationv1.SubjectAccessReview); isReview {
			review.Status.Allowed = true
			return nil
		}
		return next.Create(ctx, object, options...)
	}}
	admin := fake.NewClientBuilder().WithInterceptorFuncs(allow).Build()
	granted := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}
	runner := &Runner{
		Cluster: &testcluster.Cluster{Admin: admin}, user: "operator-a", Rules: []rule{{PolicyRule: granted}},
		roles: []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Rules: []rbacv1.PolicyRule{granted}}},
	}
	tried := runner.newTrial("drift/a", "spec-a")

	g.Expect(tried.grantRoles(t.Context())).To(Succeed())
	g.Expect(tried.GrantOutside(t.Context())).To(Succeed())

	g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: "spec-a", Name: "a"}, &rbacv1.Role{})).To(Succeed())
	g.Expect(admin.Get(t.Context(), client.ObjectKey{Name: "operator-a-of-spec-a"}, &rbacv1.ClusterRole{})).To(Succeed())
	g.Expect(tried.timeline()).To(BeEmpty())
}
