package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

func TestObstacleOf(t *testing.T) {
	tests := map[string]struct {
		err        error
		wantReason string
		// wantMessage is a part of it.
		wantMessage string
		// wantAfter: tried again then, and not before. wantCause: tried again soon, less and less often. Neither: after the usual time.
		wantAfter       time.Duration
		wantCause       bool
		wantCredentials bool
	}{
		"the token is wrong":           {err: &cloud.Error{Problem: cloud.Unauthorized, Message: "who?"}, wantReason: klusterv1alpha1.ReasonTokenRejected, wantMessage: "who?", wantCredentials: true},
		"the name is taken":            {err: &cloud.Error{Problem: cloud.NameTaken, Message: "exists"}, wantReason: klusterv1alpha1.ReasonNameTaken, wantMessage: "exists: it is not this Kluster's"},
		"the spec is refused":          {err: &cloud.Error{Problem: cloud.Refused, Message: "too many"}, wantReason: klusterv1alpha1.ReasonRefused, wantMessage: "too many"},
		"something is not found":       {err: &cloud.Error{Problem: cloud.NotFound, Message: "no such."}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "no such.", wantCause: true},
		"the cloud is busy for a time": {err: &cloud.Error{Problem: cloud.Busy, Message: "wait", RetryAfter: time.Minute}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "wait", wantAfter: time.Minute},
		"the cloud is busy":            {err: &cloud.Error{Problem: cloud.Busy, Message: "wait"}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "wait", wantCause: true},
		"the cloud has failed":         {err: &cloud.Error{Problem: cloud.Unavailable, Message: "oops"}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "oops", wantCause: true},
		"the connection is lost":       {err: errors.New("EOF of request 17"), wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "the cloud does not answer", wantCause: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("get cluster 7: %w", test.err)
			found, isObstacle := errors.AsType[*obstacle](obstacleOf(wrapped))
			g.Expect(isObstacle).To(BeTrue())
			g.Expect(found.reason).To(Equal(test.wantReason), "see obstacleOf in sync.go")
			g.Expect(found.message).To(And(ContainSubstring(test.wantMessage), Not(ContainSubstring("request 17")), Not(ContainSubstring("cluster 7"))),
				"what differs with every try makes a write of every try")
			g.Expect(found.credentials).To(Equal(test.wantCredentials))
			g.Expect(found.after).To(Equal(test.wantAfter))
			if !test.wantCause {
				g.Expect(found.cause).NotTo(HaveOccurred())
				return
			}
			g.Expect(found.cause).To(MatchError(wrapped))
		})
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "web", field.ErrorList{field.Invalid(field.NewPath("data"), "", "wrong")})
	going := apierrors.NewForbidden(secrets, "web", errors.New("the namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err error
		// wantExpected: tried again without a word. wantRefusal: reported in the status. Neither: logged.
		wantExpected, wantRefusal bool
	}{
		"somebody else was faster":              {err: apierrors.NewConflict(secrets, "web", errors.New("changed")), wantExpected: true},
		"the cache does not show it yet":        {err: apierrors.NewAlreadyExists(secrets, "web"), wantExpected: true},
		"the cache still shows it":              {err: apierrors.NewNotFound(secrets, "web"), wantExpected: true},
		"the namespace is going":                {err: going},
		"a policy forbids it":                   {err: apierrors.NewForbidden(secrets, "web", errors.New("quota")), wantRefusal: true},
		"a field is not valid":                  {err: invalid, wantRefusal: true},
		"the API server has a problem":          {err: apierrors.NewInternalError(errors.New("etcd"))},
		"the API server can't be reached":       {err: errors.New("connection refused")},
		"the API server asks to try again soon": {err: apierrors.NewTooManyRequests("busy", 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("write Secret shop/web: %w", test.err)
			g.Expect(isExpected(wrapped)).To(Equal(test.wantExpected), "see isExpected in sync.go")
			g.Expect(isRefusal(wrapped)).To(Equal(test.wantRefusal), "see isRefusal in sync.go")
		})
	}
}

func TestMemory(t *testing.T) {
	g := NewWithT(t)
	var creations memory[time.Time]
	shop, bank := cache.NewObjectName("shop", "front"), cache.NewObjectName("bank", "front")
	g.Expect(creations.of(shop)).To(BeZero())
	end := time.Now().Add(time.Hour)
	creations.set(shop, end)
	g.Expect(creations.of(shop)).To(Equal(end))
	g.Expect(creations.of(bank)).To(BeZero(), "each Kluster has its own cluster")
	creations.forget(shop)
	g.Expect(creations.of(shop)).To(BeZero())
}

func TestCloudSpec(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	kluster.Spec.NodePools = []klusterv1alpha1.NodePool{
		{
			Name: "web", Size: "c-2", Count: 3, Labels: map[string]string{"tier": "web"},
			Taints: []klusterv1alpha1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
		},
		{Name: "jobs", Size: "c-4", Autoscale: &klusterv1alpha1.Autoscale{MinNodes: 1, MaxNodes: 4}},
	}
	g.Expect(cloudSpec(kluster)).To(Equal(cloud.Spec{
		Name: "front", Region: "fra1", Version: "1.36",
		Pools: []cloud.Pool{
			{
				Name: "web", Size: "c-2", Count: 3, Labels: map[string]string{"tier": "web"},
				Taints: []cloud.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
			},
			{Name: "jobs", Size: "c-4", Autoscale: &cloud.Autoscale{Min: 1, Max: 4}},
		},
	}))
	g.Expect(ownerOf(kluster)).To(Equal(cloud.Owner{UID: "uid-of-front"}), "a name is used again, a UID is not")
}

func TestIsComplete(t *testing.T) {
	tests := map[string]struct {
		pools []cloud.Pool
		want  bool
	}{
		"all machines run":              {pools: []cloud.Pool{{Count: 1, Running: 1}, {Count: 2, Running: 2}}, want: true},
		"one of the last pool does not": {pools: []cloud.Pool{{Count: 1, Running: 1}, {Count: 2, Running: 1}}},
		"one too many still runs":       {pools: []cloud.Pool{{Count: 1, Running: 2}}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(isComplete(&cloud.Cluster{Pools: test.pools})).To(Equal(test.want), "see isComplete in provision.go")
		})
	}
}
