package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// These tests follow a Kluster from its finalizer to the creation of its cluster.

func TestTheFinalizerComesFirst(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		finalizers []string
		deleted    bool
		// stale means that the cache does not show the operator's last write yet.
		stale bool
		// want lists the finalizers that the Kluster has afterwards; nil means that no patch is sent.
		want []string
	}{
		"a new Kluster":                           {want: []string{klusterv1alpha1.Finalizer}},
		"a new Kluster with another finalizer":    {finalizers: []string{"example.com/theirs"}, want: []string{"example.com/theirs", klusterv1alpha1.Finalizer}},
		"a deleted Kluster without our finalizer": {finalizers: []string{"example.com/theirs"}, deleted: true},
		"a Kluster whose stale version is cached": {stale: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			kluster.Finalizers = test.finalizers
			if test.deleted {
				kluster.DeletionTimestamp = &now
			}
			r := newTrial(t, kluster)
			if test.stale {
				r.staleVersions.Store(cache.MetaObjectToName(kluster), kluster.ResourceVersion)
			}
			r.api.PrependReactor("patch", "klusters", withNewVersion(slices.Clone(r.api.ReactionChain)))
			g.Expect(r.step(t)).To(Succeed())
			g.Expect(r.cloud.Journal()).To(BeEmpty(), "the first request to the cloud must come after the finalizer, see reconcile in reconcile.go")
			sent := patches(r.api.Actions())
			if test.want == nil {
				g.Expect(sent).To(BeEmpty(), "a stale Kluster stays as it is, and one that is being deleted can't get a new finalizer, see reconcile in reconcile.go and needsFinalizer in metadata.go")
				return
			}
			g.Expect(r.live(t).Finalizers).To(Equal(test.want), "see addFinalizer in metadata.go")
			g.Expect(sent).To(ConsistOf(And(ContainSubstring(`"uid":"uid-of-front"`), ContainSubstring(`"resourceVersion":"30"`))),
				"the UID protects a later Kluster with the same name, and the resource version keeps a stale list from being written, see metadata.go")
			g.Expect(fieldManagers(r.api.Actions())).To(ConsistOf(programName),
				"the patch must name programName as its field manager, see patchMetadata in metadata.go")
			g.Expect(kluster.Finalizers).To(Equal(test.finalizers), "the cache's own object must not be changed")
			g.Expect(r.isStale(kluster)).To(BeTrue(), "until the cache shows this write, another reconcile is useless: call c.wrote, see patchMetadata in metadata.go")
		})
	}
}

// withNewVersion makes the fake client return a new resource version after a write, as the API server does.
func withNewVersion(chain []clienttesting.Reactor) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, reactor := range chain {
			if !reactor.Handles(action) {
				continue
			}
			handled, object, err := reactor.React(action)
			if kluster, is := object.(*klusterv1alpha1.Kluster); is && err == nil {
				kluster.ResourceVersion = "31"
			}
			return handled, object, err
		}
		return false, nil, nil
	}
}

func TestReadToken(t *testing.T) {
	const value = "dop-v1-secret"
	tests := map[string]struct {
		change func(*corev1.Secret)
		absent bool
		want   string
		// wantReason is the error's reason, and wantMessage is a part of its message.
		wantReason, wantMessage string
	}{
		"the token, without the spaces and line feed around it": {change: func(secret *corev1.Secret) { secret.Data["token"] = []byte(" " + value + "\n") }, want: value},
		"no Secret":    {absent: true, wantReason: "TokenMissing", wantMessage: "digitalocean"},
		"another type": {change: func(secret *corev1.Secret) { secret.Type = corev1.SecretTypeOpaque }, wantReason: "TokenNotAllowed", wantMessage: "inspirit941.dev/cloud-token"},
		"another key": {
			change:     func(secret *corev1.Secret) { secret.Data = map[string][]byte{"password": []byte(value)} },
			wantReason: "TokenMissing", wantMessage: `"token"`,
		},
		"white space":               {change: func(secret *corev1.Secret) { secret.Data["token"] = []byte(" \n") }, wantReason: "TokenMissing", wantMessage: `"token"`},
		"two lines":                 {change: func(secret *corev1.Secret) { secret.Data["token"] = []byte(value + "\n" + value) }, wantReason: "TokenMissing", wantMessage: `"token"`},
		"a character outside ASCII": {change: func(secret *corev1.Secret) { secret.Data["token"] = []byte(value + "ß") }, wantReason: "TokenMissing", wantMessage: `"token"`},
	}
	_, _, withoutSecret := (&controller{clients: &clients{kube: kubefake.NewClientset()}}).readToken(t.Context(), storedKluster())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			secret := tokenSecret(kluster)
			secret.Data["token"] = []byte(value)
			if test.change != nil {
				test.change(secret)
			}
			kube := kubefake.NewClientset()
			if !test.absent {
				kube = kubefake.NewClientset(secret)
			}
			c := &controller{clients: &clients{kube: kube}}
			token, _, err := c.readToken(t.Context(), kluster)
			g.Expect(token).To(Equal(test.want), "see readToken in token.go")
			if test.wantReason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			blocking, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(BeTrue(), "expected blockedByToken, found: %v", err)
			g.Expect(blocking.reason).To(Equal(test.wantReason))
			g.Expect(blocking.credentials).To(BeTrue(), "the condition CredentialsReady must report it")
			g.Expect(blocking.message).To(And(ContainSubstring(test.wantMessage), Not(ContainSubstring(value))), "the message must say what is wrong, with any key in quotation marks, and must not contain the value, see readToken in token.go")
			if !test.absent {
				g.Expect(err.Error()).NotTo(Equal(fmt.Sprint(withoutSecret)), "now there is a Secret: the message must say what is wrong with it, see readToken in token.go")
			}
		})
	}
}

// teller is a cloud that implements only Identity. Other calls panic.
type teller struct {
	cloud.CloudProvider
	identity string
	err      error
}

func (a *teller) Identity(context.Context) (string, error) { return a.identity, a.err }

func TestConnect(t *testing.T) {
	tests := map[string]struct {
		account teller
		// recorded is the account on record, or "" if there is none.
		recorded string
		// wantAnother means that connect must report that the token belongs to another account.
		wantAnother bool
	}{
		"no account is on record":      {account: teller{identity: "acme"}},
		"it is the account on record":  {account: teller{identity: "acme"}, recorded: "acme"},
		"another account is on record": {account: teller{identity: "acme"}, recorded: "theirs", wantAnother: true},
		"the cloud does not accept it": {account: teller{err: &cloud.Error{Problem: cloud.Unauthorized, Message: "who?"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := inAccount(test.recorded)
			r := newTrial(t, kluster)
			r.openAccount = func(token string) cloud.CloudProvider {
				g.Expect(token).To(Equal(tokenFor(kluster.Namespace)))
				return &test.account
			}
			observed, err := r.connect(t.Context(), kluster)
			if test.account.err != nil {
				g.Expect(err).To(HaveOccurred(), "see connect in token.go")
				return
			}
			g.Expect(observed.account).To(Equal(test.account.identity), "see connect in token.go")
			if !test.wantAnother {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			blocking, isBlocked := errors.AsType[*blockedError](err)
			g.Expect(isBlocked).To(BeTrue(), "another account does not know the cluster: expected blockedByToken, found: %v, see connect in token.go", err)
			g.Expect(blocking.reason).To(Equal(klusterv1alpha1.ReasonAnotherAccount))
			g.Expect(blocking.message).To(And(ContainSubstring("acme"), ContainSubstring("theirs")), "the message must name both accounts, see connect in token.go")
			g.Expect(blocking.credentials).To(BeTrue(), "the token is the problem, see blockedByToken in errors.go")
		})
	}
}

// inAccount returns a Kluster with this account on record. If the account is "", the Kluster has none on record.
func inAccount(account string) *klusterv1alpha1.Kluster {
	kluster := storedKluster()
	if account != "" {
		kluster.Annotations = map[string]string{klusterv1alpha1.ExternalAccountAnnotation: account}
	}
	return kluster
}

func TestConnectTranslatesTheCloudsError(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	r.openAccount = func(string) cloud.CloudProvider {
		return &teller{err: &cloud.Error{Problem: cloud.Unauthorized, Message: "who?"}}
	}
	_, err := r.connect(t.Context(), storedKluster())
	blocking, isBlocked := errors.AsType[*blockedError](err)
	g.Expect(isBlocked).To(BeTrue(), "expected a blockedError, found: %v, see connect in token.go", err)
	g.Expect(blocking.reason).To(Equal(klusterv1alpha1.ReasonTokenRejected))
}

func TestConnectProtectsTheSecret(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		identity string
		kluster  func(*klusterv1alpha1.Kluster)
		secret   func(*corev1.Secret)
		refused  bool
		// wantReason is the reason of the blockedError, or "" if there is none.
		wantReason string
		// wantMessage is a part of its message, which must also name the Secret. If wantMessage is "", the message
		// is not checked.
		wantMessage string
		// wantProtected means that connect adds the Kluster's finalizer to the Secret.
		wantProtected bool
	}{
		"the cloud accepts the token":          {identity: "acme", wantProtected: true},
		"the token belongs to another account": {identity: "theirs", wantReason: "AnotherAccount"},
		"the Kluster is being deleted":         {identity: "acme", kluster: func(kluster *klusterv1alpha1.Kluster) { kluster.DeletionTimestamp = &now }},
		"the Secret is being deleted":          {identity: "acme", secret: func(secret *corev1.Secret) { secret.DeletionTimestamp = &now }, wantReason: "TokenMissing", wantMessage: "deleted"},
		"the deleted Secret is protected already": {identity: "acme", secret: func(secret *corev1.Secret) {
			secret.DeletionTimestamp, secret.Finalizers = &now, []string{tokenFinalizer(storedKluster())}
		}},
		"the API server refuses to protect it":    {identity: "acme", refused: true, wantReason: "SecretRefused", wantMessage: "finalizer"},
		"another Kluster has protected it before": {identity: "acme", secret: func(secret *corev1.Secret) { secret.Finalizers = []string{"inspirit941.dev/kluster-of-another"} }, wantProtected: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := inAccount("acme")
			if test.kluster != nil {
				test.kluster(kluster)
			}
			r := newTrial(t, kluster)
			secret := r.secret(t)
			if test.secret != nil {
				test.secret(secret)
			}
			want := slices.Clone(secret.Finalizers)
			r.kube = kubefake.NewClientset(secret)
			if test.refused {
				r.kube.PrependReactor("patch", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "digitalocean", errors.New("a policy"))
				})
			}
			r.clients.kube, r.clients.metadata = r.kube, metadataOf(r.kube)
			r.openAccount = func(string) cloud.CloudProvider { return &teller{identity: test.identity} }
			observed, err := r.connect(t.Context(), kluster)
			if test.wantReason != "" {
				blocking, isBlocked := errors.AsType[*blockedError](err)
				g.Expect(isBlocked).To(BeTrue(), "expected %s, found: %v, see protectSecret in token.go", test.wantReason, err)
				g.Expect(blocking.reason).To(Equal(test.wantReason), "see protectSecret in token.go")
				if test.wantMessage != "" {
					g.Expect(blocking.message).To(And(ContainSubstring("digitalocean"), ContainSubstring(test.wantMessage)), "see protectSecret in token.go")
				}
				g.Expect(blocking.credentials).To(Equal(!test.refused), "the condition CredentialsReady must say whether the token is the problem, see blockedByToken in errors.go")
				g.Expect(blocking.transient != nil).To(Equal(test.refused), "a policy may change at any time, and no event announces that")
			} else {
				g.Expect(err).NotTo(HaveOccurred(), "see protectSecret in token.go")
			}
			if test.wantProtected {
				want = append(want, tokenFinalizer(kluster))
				g.Expect(observed.tokenSecret).To(HaveValue(HaveField("Finalizers", ConsistOf(want))), "the observation must contain the Secret as it is now, see protectSecret in token.go")
				g.Expect(patches(r.kube.Actions())).To(ConsistOf(ContainSubstring(`"uid":"uid-of-token"`)), "the UID protects a later Secret with the same name, see patchTokenFinalizer in token.go")
				g.Expect(fieldManagers(r.kube.Actions())).To(ConsistOf(programName), "the patch must name programName as its field manager, see patchTokenFinalizer in token.go")
			}
			g.Expect(r.secret(t).Finalizers).To(ConsistOf(want), "see protectSecret in token.go: other Klusters' finalizers must stay")
		})
	}
}

func TestOneKlusterMakesOneCluster(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	g.Expect(r.steps(t)).To(Succeed())
	g.Expect(r.creations()).To(HaveLen(1), "see create in reconcile.go")
	made := r.cloud.Clusters()[0]
	g.Expect(made.Name).To(Equal("front"))
	g.Expect(made.Tags).To(ContainElement("kluster-uid:uid-of-front"))
	g.Expect(r.live(t).Annotations).To(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, made.ID), "see recordExternalName in metadata.go")
	g.Expect(r.live(t).Annotations).NotTo(HaveKey(klusterv1alpha1.CreatePendingAnnotation))
}

// manyOfAName is a cloud that allows several clusters with the same name, as many clouds do.
type manyOfAName struct {
	cloud.CloudProvider
	made *int
}

func (a *manyOfAName) Create(ctx context.Context, owner cloud.Owner, spec cloud.Spec) (*cloud.Cluster, error) {
	*a.made++
	if *a.made > 1 {
		spec.Name += "-again"
	}
	return a.CloudProvider.Create(ctx, owner, spec)
}

// After each of these faults, the cluster exists and costs money, but the operator hasn't received its ID.
func TestALostAnswer(t *testing.T) {
	tests := map[string]doks.Fault{
		"the connection drops":             creating(doks.FaultDrop, true),
		"the answer is cut off":            creating(doks.FaultCut, false),
		"the answer is a proxy's page":     creating(doks.FaultBadGateway, true),
		"the cloud responds with an error": creating(doks.FaultServerError, true),
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTrial(t, storedKluster())
			open, made := r.openAccount, 0
			r.openAccount = func(token string) cloud.CloudProvider { return &manyOfAName{CloudProvider: open(token), made: &made} }
			g.Expect(r.cloud.AddFault(fault)).To(Succeed())
			_ = r.steps(t) // a step may fail, because the response is lost
			g.Expect(r.creations()).To(HaveLen(1), "each of these creations made a cluster that costs money, and the Kluster knows at most one of them, see findCluster in reconcile.go")
			g.Expect(r.live(t).Annotations).To(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, r.cloud.Clusters()[0].ID), "see act in reconcile.go")
		})
	}
}

func TestALostAnswerWhereNamesAreUnique(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	g.Expect(r.cloud.AddFault(creating(doks.FaultDrop, true))).To(Succeed())
	last := r.steps(t)
	g.Expect(r.creations()).To(HaveLen(1))
	g.Expect(r.live(t).Annotations).To(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, r.cloud.Clusters()[0].ID),
		"the cluster costs money, but the Kluster does not have its ID, even after 10 reconciles; the last one returned: %v", last)
}

func TestTheIntentIsWrittenFirst(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	var recorded map[string]string
	r.cloud.Interrupt(func(call doks.Call) (func() error, error) {
		if call.Operation == "create cluster" {
			recorded = r.live(t).Annotations
		}
		return nil, nil
	})
	g.Expect(r.steps(t)).To(Succeed())
	g.Expect(recorded).To(HaveKey(klusterv1alpha1.CreatePendingAnnotation), "the create intent must be recorded before the cloud is asked for a cluster, see create in reconcile.go")
	g.Expect(recorded).To(HaveKeyWithValue(klusterv1alpha1.ExternalAccountAnnotation, "0b5c0a52-0000-4000-8000-0000000000bb"), "the create intent must also name the account, see recordCreatePending in metadata.go")
	g.Expect(patches(r.api.Actions())).To(ContainElement(And(ContainSubstring(klusterv1alpha1.ExternalAccountAnnotation), ContainSubstring(`"resourceVersion":"30"`))),
		"with the resource version, the API server refuses the intent if the Kluster has changed, see recordCreatePending in metadata.go")
}

func TestReconcileReadsTheToken(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	var asked []string
	open := r.openAccount
	r.openAccount = func(token string) cloud.CloudProvider {
		asked = append(asked, token)
		return open(token)
	}
	_ = r.step(t)
	g.Expect(asked).To(ConsistOf(tokenFor("shop")), "see reconcile in reconcile.go, and connect in token.go")
}
