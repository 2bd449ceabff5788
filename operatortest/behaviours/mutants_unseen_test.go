package behaviours

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws that a comparison of final states misses: in fields that Normalize removes, in undeclared objects, in another
// namespace, and after the final state has been reached.
const (
	keepsToken      mutation = "puts a token into its ConfigMap, and never checks it again"
	leaksSecret     mutation = "creates a Secret for each gadget, and never deletes it"
	leaksAtStart    mutation = "creates another Secret at each start"
	writesElsewhere mutation = "writes to another namespace"
	takesBack       mutation = "reaches the right state after a change of the spec, and leaves it again"
)

// Correct operators that resemble these or other broken ones.
const (
	restoresToken  mutation = "puts a token into its ConfigMap, and restores the token when it is changed"
	declaresSecret mutation = "creates a Secret, which is declared as a child"
	makesNothing   mutation = "has no children"

	observesInStatus mutation = "writes observedGeneration only to the status, not to its condition"
	warnsTwice       mutation = "emits two different Warning events about someone else's ConfigMap"
	hasPhase         mutation = "reports with a phase whether the spec is met, and has no conditions"
)

// secretiveOperator adapts the reference operator's description to these operators, and to some in other files.
func secretiveOperator(mutation mutation, operator operatortest.Operator) operatortest.Operator {
	switch mutation {
	case keepsToken, restoresToken:
		operator.Children[0].Drift = map[string]string{"another token": `{"data":{"token":"someone-else"}}`}
		operator.Normalize = func(object *unstructured.Unstructured) {
			unstructured.RemoveNestedField(object.Object, "data", "token")
		}
	case leaksSecret, leaksAtStart:
		operator.Roles = []string{"testdata/gadget/role-secrets.yaml"}
	case declaresSecret:
		operator.Roles = []string{"testdata/gadget/role-secrets.yaml"}
		operator.Children = append(operator.Children, operatortest.Child{Kind: corev1.SchemeGroupVersion.WithKind("Secret")})
		operator.MaxWrites++
	case logsSecret, logsEncoded, tellsByEvent, tellsByCondition, annotatesSecret, tellsOnError, printsSecret, copiesSecret, unheard:
		operator = confidingOperator(mutation, operator)
	case sharesSelector, selectsOwn:
		operator = deployingOperator(operator)
	case assignsEnv, ownsTemplate, mergesEnv, appliesAll, appliesNews, appliesForEver, claimsEarly, waitsForPods, waitsForSlowPods:
		operator = deploymentKeeper(operator)
	case servesWidgets:
		operator = widgetOperator(operator)
	case makesRole, leaksRole:
		operator = roleOperator(operator)
	case delegates:
		operator = delegatingOperator(operator)
	case keepsArchive, losesArchive, ownsArchive, sweepsNotes, leavesNotes, seizesNotes:
		operator = besideOperator(mutation, operator)
	case runsJob:
		operator = jobOperator(operator)
	case hashesName:
		operator = hashing(operator)
	case isStalled:
		operator.LeftOut = map[string]string{trial.Kstatus: "the condition Stalled is another controller's"}
	case makesTwo, triesSecondOnce:
		operator = secretPair(operator)
	case makesNothing:
		operator.Children, operator.Unmeetable = nil, nil
	case hasPhase:
		operator.Converged = isSettled
	}
	return operator
}

// setPhase sets a phase, and the generation to which it applies, instead of the conditions.
func setPhase(gadget *unstructured.Unstructured, conditions []metav1.Condition) {
	phase := "Refused"
	if meta.IsStatusConditionTrue(conditions, "Ready") {
		phase = "Settled"
	}
	gadget.Object["status"] = map[string]any{"phase": phase, "observedGeneration": gadget.GetGeneration()}
}

// isSettled interprets the phase for the kit, as a suite's Converged does.
func isSettled(gadget *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(gadget.Object, "status", "phase")
	if phase != "Settled" || observedGeneration(gadget) != gadget.GetGeneration() {
		return fmt.Errorf("the phase is %q, of generation %d", phase, observedGeneration(gadget))
	}
	return nil
}

func observedGeneration(gadget *unstructured.Unstructured) int64 {
	observed, _, _ := unstructured.NestedInt64(gadget.Object, "status", "observedGeneration")
	return observed
}

// takeBack reaches the right state after a change to the spec, and leaves it a moment later.
func (r *gadgetReconciler) takeBack(ctx context.Context, gadget *unstructured.Unstructured) error {
	if _, done := r.memory.Load(gadget.GetGeneration()); done {
		return nil
	}
	if err := errors.Join(r.begin(ctx, gadget), r.keepConfigMap(ctx, gadget)); err != nil || gadget.GetGeneration() == 1 {
		return err
	}
	r.memory.Store(gadget.GetGeneration(), true)
	time.AfterFunc(trial.Quiet/2, func() {
		faded := client.RawPatch(types.MergePatchType, []byte(`{"data":{"size":"0"}}`))
		_ = r.Patch(context.WithoutCancel(ctx), desiredConfigMap(gadget), faded) // it fails if the trial is over
	})
	return nil
}

// tokenOf returns a different token for each gadget.
func tokenOf(gadget *unstructured.Unstructured) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(gadget.GetUID())))
}

func (r *gadgetReconciler) leakSecret(ctx context.Context, gadget *unstructured.Unstructured) error {
	leaked := newSecret(gadget)
	leaked.OwnerReferences = nil
	return r.alsoMake(ctx, gadget, leaked)
}

func (r *gadgetReconciler) leakAtStart(ctx context.Context, gadget *unstructured.Unstructured) error {
	leaked := newSecret(gadget)
	leaked.Name, leaked.GenerateName = "", "start-"
	if _, again := r.memory.LoadOrStore("started", true); again {
		return r.alsoMake(ctx, gadget, nil)
	}
	return r.alsoMake(ctx, gadget, leaked)
}

func (r *gadgetReconciler) declareSecret(ctx context.Context, gadget *unstructured.Unstructured) error {
	return r.alsoMake(ctx, gadget, newSecret(gadget))
}

// newSecret returns a Secret owned by the gadget.
func newSecret(gadget *unstructured.Unstructured) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: gadget.GetNamespace(), Name: gadget.GetName(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)},
	}}
}

// alsoMake does what the reference operator does. If object isn't nil, alsoMake also creates that Secret, before the
// ConfigMap.
func (r *gadgetReconciler) alsoMake(ctx context.Context, gadget *unstructured.Unstructured, object *corev1.Secret) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if object != nil {
		if err := client.IgnoreAlreadyExists(r.Create(ctx, object)); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

func (r *gadgetReconciler) writeElsewhere(ctx context.Context, gadget *unstructured.Unstructured) error {
	elsewhere := desiredConfigMap(gadget)
	elsewhere.Namespace, elsewhere.Name, elsewhere.OwnerReferences = metav1.NamespaceDefault, gadget.GetNamespace(), nil
	if err := client.IgnoreAlreadyExists(r.Create(ctx, elsewhere)); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, elsewhere)); err != nil { // so that nothing is left there
		return err
	}
	return r.alsoMake(ctx, gadget, nil)
}

func (r *gadgetReconciler) makeNothing(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	return r.writeStatus(ctx, gadget, "")
}

var _ = Describe("the test kit", func() {
	catches("has flaws that comparisons of states miss",
		mutant{drift, keepsToken, "data.token of ConfigMap settings still has the value that it was changed to"},
		mutant{converges, leaksSecret, "found Secret gadget\n"},
		mutant{converges, leaksAtStart, "found Secret start-"},
		mutant{converges, writesElsewhere, "create configmaps default/"},
		mutant{update, takesBack, "another state (- is expected, + is found):"},
	)
})

var _ = Describe("the test kit", func() {
	accepts("only resembles a broken one",
		twin{restoresToken, []behaviour{drift}},
		twin{declaresSecret, []behaviour{converges, deletion}},
		twin{makesNothing, []behaviour{converges, silent, failover}},
		twin{observesInStatus, []behaviour{converges, update}},
		twin{warnsTwice, []behaviour{collision}},
		twin{selectsOwn, []behaviour{neighbours}},
		twin{recoversItself, []behaviour{converges}},
		twin{copiesSecret, []behaviour{secrets}},
		twin{patchesByName, []behaviour{failover}},
		twin{keepsLast, []behaviour{growth}},
		twin{startsWorkers, []behaviour{growth}},
		twin{hasPhase, []behaviour{converges, update, transitions, misoperation, deletion}},
		twin{warnsOnly, []behaviour{misoperation}},
		twin{runsPods, []behaviour{misoperation}},
		twin{needsSecret, []behaviour{misoperation}},
	)
})

var _ = It(`the behaviours "drift" and "collision" need an operator with children`, func() {
	Expect(drift.needsChild).To(BeTrue())
	Expect(collision.needsChild).To(BeTrue())
})

var _ = DescribeTable("a disturbance that changes nothing is noticed", func(ctx SpecContext, lacking behaviour, change func(*operatortest.Operator), report string) {
	operator := gadgetOperator("")
	operator.Timeout = catchTimeout
	change(&operator)
	expectReport(ctx, lacking, operator, report)
},
	Entry("a patch that sets the current value", drift,
		func(operator *operatortest.Operator) {
			operator.Children[0].Drift = map[string]string{"the same": `{"data":{"size":"2"}}`}
		},
		`expected the patch {"data":{"size":"2"}} to change ConfigMap settings`),
	Entry("a patch with a misspelt field", drift,
		func(operator *operatortest.Operator) {
			operator.Children[0].Drift = map[string]string{"misspelt": `{"dota":{"size":"9"}}`}
		},
		`unknown field "dota"`),
	Entry("a patch of others' fields that are not compared", drift,
		func(operator *operatortest.Operator) {
			operator.Normalize = func(object *unstructured.Unstructured) {
				unstructured.RemoveNestedField(object.Object, "data", "theirs")
			}
		},
		`expected the patch {"data":{"theirs":"kept"}} to change a compared field of ConfigMap settings`),
	Entry("a declared child that the sample does not have", drift,
		func(operator *operatortest.Operator) {
			operator.Children = append(operator.Children, operatortest.Child{
				Kind: corev1.SchemeGroupVersion.WithKind("Service"), Name: func(*unstructured.Unstructured) string { return "" },
			})
		},
		"found no name for its Service"),
	Entry("an unmeetable spec that is the same as the sample's", transitions,
		func(operator *operatortest.Operator) { operator.Unmeetable[0].Patch = `{"spec":{"size":2}}` },
		`expected the patch of Operator.Unmeetable "ConfigMap belongs to someone else" to change the sample's spec`),
)
