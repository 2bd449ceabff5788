package trial

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/traffic"
)

// pausing is a trial with one operator.
type pausing struct {
	*Trial
	t *testing.T
	g *WithT
}

func newPausing(t *testing.T, maxPause time.Duration, objects ...client.Object) *pausing {
	runner := &Runner{
		Operator: operatortest.Operator{MaxPause: maxPause, Children: []operatortest.Child{
			{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment")}, {Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		}},
		Sample: objectNamed("example.com/v1", "Site", "sample"),
		store:  &store{changes: map[string]int{}},
	}
	made := &pausing{&Trial{Runner: runner, Namespace: "here", Cluster: recordedCluster{Admin: fake.NewClientBuilder().WithObjects(objects...).Build()}}, t, NewWithT(t)}
	made.instances = []*Instance{{Tap: traffic.New()}}
	return made
}

func objectNamed(apiVersion, kind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	made.SetNamespace("here")
	made.SetName(name)
	return made
}

// answers is an API server that gives every request the same reply.
type answers struct {
	status int
	// meanwhile is called before the reply, unless it is nil.
	meanwhile func()
}

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.meanwhile != nil {
		a.meanwhile()
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// request makes a request as the operator.
func (p *pausing) request(status int, meanwhile func()) {
	server := answers{status, meanwhile}
	transport, err := rest.TransportFor(p.instances[0].Tap.Config(&rest.Config{Transport: server}))
	p.g.Expect(err).NotTo(HaveOccurred())
	made, err := http.NewRequest(http.MethodGet, "http://server/api/v1/namespaces/here/configmaps/one", nil)
	p.g.Expect(err).NotTo(HaveOccurred())
	response, err := transport.RoundTrip(made)
	p.g.Expect(err).NotTo(HaveOccurred())
	p.g.Expect(response.Body.Close()).To(Succeed())
}

// never is what looks returns if the wait doesn't end early.
const never = 20 * looksPerSecond

// looks returns after how many looks the pause ends the wait.
func (p *pausing) looks(idle *pause) int {
	for look := 1; look < never; look++ {
		idle.look()
		if idle.isOver(p.t.Context()) {
			return look
		}
	}
	return never
}

func TestPause(t *testing.T) {
	tests := map[string]struct {
		maxPause time.Duration
		// before is called before the wait, and meanwhile is called after the first look. Either may be nil.
		before, meanwhile func(*pausing)
		want              int
	}{
		"an operator that does nothing":            {maxPause: 3 * time.Second, want: 3 * looksPerSecond},
		"a pause between two whole seconds":        {maxPause: 2100 * time.Millisecond, want: 3 * looksPerSecond},
		"a pause that is shorter than the minimum": {maxPause: time.Second, want: 2 * looksPerSecond},
		"an operator whose pause is unknown":       {want: never},
		"watch events are held back": {maxPause: time.Second, want: never, before: func(p *pausing) {
			p.instances[0].Tap.Hold(func(traffic.Request) bool { return true })
		}},
		"an operator that is starting": {maxPause: time.Second, want: never, before: func(p *pausing) {
			p.instances = append(p.instances, &Instance{Tap: traffic.New()})
		}},
		"a failed request":         {maxPause: time.Second, want: 2 * looksPerSecond, before: fail(1)},
		"three failed requests":    {maxPause: 3 * time.Second, want: 8 * looksPerSecond, before: fail(3)},
		"a lot of failed requests": {maxPause: time.Second, want: never, before: fail(70)},
		"failures of a stopped operator": {maxPause: time.Second, want: 2 * looksPerSecond, before: func(p *pausing) {
			fail(3)(p)
			p.instances[0].Stopped = true
		}},
		"a request":                        {maxPause: time.Second, want: 2*looksPerSecond + 1, meanwhile: func(p *pausing) { p.request(http.StatusOK, nil) }},
		"a stopped operator":               {maxPause: time.Second, want: 2*looksPerSecond + 1, meanwhile: func(p *pausing) { p.instances[0].Stopped = true }},
		"a change":                         {maxPause: time.Second, want: 2*looksPerSecond + 1, meanwhile: changeIn("here")},
		"a change in another trial":        {maxPause: time.Second, want: 2 * looksPerSecond, meanwhile: changeIn("there")},
		"a change in the second namespace": {maxPause: time.Second, want: 2*looksPerSecond + 1, before: addNamespace, meanwhile: changeIn("there")},
		"a change in the first namespace":  {maxPause: time.Second, want: 2*looksPerSecond + 1, before: useSecondNamespace, meanwhile: changeIn("here")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tried := newPausing(t, test.maxPause)
			tried.request(http.StatusOK, nil)
			if test.before != nil {
				test.before(tried)
			}
			idle := tried.newPause(t.Context())
			idle.look()
			if test.meanwhile != nil {
				test.meanwhile(tried)
			}
			tried.g.Expect(tried.looks(idle)).To(Equal(test.want))
		})
	}
	t.Run("a request without a reply", func(t *testing.T) {
		tried, got := newPausing(t, time.Second), 0
		tried.request(http.StatusOK, func() { got = tried.looks(tried.newPause(t.Context())) })
		tried.g.Expect(got).To(Equal(never))
	})
	t.Run("a change during the last look", func(t *testing.T) {
		tried := newPausing(t, time.Second)
		tried.request(http.StatusOK, nil)
		idle := tried.newPause(t.Context())
		for range 2*looksPerSecond + 1 {
			idle.look()
			if idle.looks == looksPerSecond {
				tried.g.Expect(idle.isOver(t.Context())).To(BeFalse(), "the first look that asks the API server must only note what exists outside Kubernetes")
			}
		}
		changeIn("here")(tried)
		tried.g.Expect(idle.isOver(t.Context())).To(BeFalse())
		tried.g.Expect(tried.looks(idle)).To(Equal(2*looksPerSecond+1), "the count must start again")
	})
	t.Run("a wait that must not end early", func(t *testing.T) {
		tried := newPausing(t, time.Second)
		tried.g.Expect(tried.looks(tried.newPause(Patiently(t.Context())))).To(Equal(never))
	})
}

func fail(times int) func(*pausing) {
	return func(p *pausing) {
		for range times {
			p.request(http.StatusConflict, nil)
		}
	}
}

func changeIn(namespace string) func(*pausing) {
	return func(p *pausing) { p.store.changes[namespace]++ }
}

func addNamespace(p *pausing) {
	p.beside = &Trial{Runner: p.Runner, Namespace: "there", Cluster: p.Cluster, first: p.Trial}
}

func useSecondNamespace(p *pausing) {
	addNamespace(p)
	p.beside.instances = p.instances
	p.Trial = p.beside
}

// A wait must not end early while Kubernetes has something left to do.
func TestOthersAct(t *testing.T) {
	site := objectNamed("example.com/v1", "Site", "one")
	site.SetUID("uid-of-one")
	owned := func(apiVersion, kind, owner string) *unstructured.Unstructured {
		made := objectNamed(apiVersion, kind, "child")
		made.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Site", Name: "one", UID: types.UID(owner)}})
		return made
	}
	ending := owned("v1", "ConfigMap", "uid-of-one")
	ending.SetFinalizers([]string{"example.com/someone-else"})
	ending.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	held := site.DeepCopy()
	held.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	waiting := held.DeepCopy()
	held.SetFinalizers([]string{"example.com/operator"})
	waiting.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	tests := map[string]struct {
		objects []client.Object
		want    bool
	}{
		"a finished child":                               {[]client.Object{site, owned("v1", "ConfigMap", "uid-of-one")}, false},
		"a Deployment without pods":                      {[]client.Object{site, owned("apps/v1", "Deployment", "uid-of-one")}, true},
		"a child whose owner is gone":                    {[]client.Object{site, owned("v1", "ConfigMap", "uid-of-another")}, true},
		"a child that is being deleted":                  {[]client.Object{site, ending}, true},
		"a deleted resource, held by the operator":       {[]client.Object{held}, false},
		"a deleted resource, held until its children go": {[]client.Object{waiting}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tried := newPausing(t, time.Second, test.objects...)
			tried.g.Expect(tried.othersAct(t.Context())).To(Equal(test.want))
			addNamespace(tried)
			tried.g.Expect(tried.beside.othersAct(t.Context())).To(Equal(test.want), "the second namespace's Trial must also see what happens in the first")
		})
	}
}
