package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/traffic"
)

// Flaws that show only if a write other than the first of its kind fails.
const (
	triesSecondOnce mutation = "creates two Secrets, and ignores an error of the second"
	marksOnce       mutation = "ignores an error of its second patch of the gadget"
)

// makesTwo is a correct operator that resembles triesSecondOnce.
const makesTwo mutation = "creates two Secrets"

// markAnnotation is the annotation that marksOnce writes.
const markAnnotation = "test.example.com/mark"

// secretPair describes the operators makesTwo and triesSecondOnce.
func secretPair(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-secrets.yaml"}
	secret := operatortest.Child{Kind: corev1.SchemeGroupVersion.WithKind("Secret")}
	second := secret
	second.Name = func(gadget *unstructured.Unstructured) string { return gadget.GetName() + "-second" }
	operator.Children = append(operator.Children, secret, second)
	operator.MaxWrites += 2
	return operator
}

func (r *gadgetReconciler) makePair(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := r.makeSecret(ctx, newSecret(gadget)); err != nil {
		return err
	}
	second := newSecret(gadget)
	second.Name += "-second"
	if _, tried := r.memory.LoadOrStore(gadget.GetUID(), true); r.flaw == makesTwo || !tried {
		err := r.makeSecret(ctx, second)
		if err != nil && r.flaw == makesTwo {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

func (r *gadgetReconciler) makeSecret(ctx context.Context, secret *corev1.Secret) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return client.IgnoreAlreadyExists(r.Create(ctx, secret))
	}
	return err
}

// markOnce does what the reference operator does. Before the ConfigMap, it also adds an annotation to the gadget, with
// a patch that it never retries.
func (r *gadgetReconciler) markOnce(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	_, marked := gadget.GetAnnotations()[markAnnotation]
	if _, tried := r.memory.LoadOrStore(gadget.GetUID(), true); !marked && !tried {
		before := gadget.DeepCopy()
		gadget.SetAnnotations(merged(gadget.GetAnnotations(), map[string]string{markAnnotation: "yes"}))
		_ = r.Patch(ctx, gadget, client.MergeFrom(before))
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = Describe("the test kit", func() {
	catches("ignores an error of a later write",
		mutant{faults, triesSecondOnce, "there is no Secret gadget-second yet"},
		mutant{faults, marksOnce, "test.example.com/mark: "},
	)
	accepts("makes several objects of a kind", twin{makesTwo, []behaviour{converges, faults}})
})

var _ = pooledIt("a fault that disturbs nothing is reported as not tried", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(""), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	life, _, err := undisturbed(ctx, runner)
	g.Expect(err).NotTo(HaveOccurred())
	first := true
	rules := map[string]func(traffic.Request, *phase) traffic.Action{
		"nothing fails": func(traffic.Request, *phase) traffic.Action { return traffic.Action{} },
		"watches break before there are any": func(traffic.Request, *phase) traffic.Action {
			defer func() { first = false }()
			return traffic.Action{CutWatches: first}
		},
	}
	for name, rule := range rules {
		g.Expect(runner.Try(trial.WithBehaviour(ctx, faults.name), name, func(ctx context.Context, t *trial.Trial) error {
			return tryFault(ctx, t, life, fault{what: name, decide: rule})
		})).To(Succeed())
	}
	g.Expect(runner.Trials(faults.name)).To(HaveEach(And(HaveField("Result", report.NotTried), HaveField("Remark", HavePrefix("nothing to disturb")))))
})

var _ = It("makes the first requests of a kind fail, and then one later write to each of a few objects", func() {
	now := newPhase()
	fails := func(verb, name string) bool {
		return now.fails(traffic.Request{Verb: verb, Resource: "configmaps", Name: name})
	}
	Expect([]bool{fails("list", ""), fails("list", "")}).To(Equal([]bool{true, false}))
	Expect([]bool{fails("create", "a"), fails("create", "a"), fails("create", "a")}).To(Equal([]bool{true, true, false}))
	Expect([]bool{fails("create", "b"), fails("create", "b"), fails("create", "b")}).To(Equal([]bool{true, false, false}))
	Expect([]bool{fails("create", "a"), fails("create", "c")}).To(Equal([]bool{true, true}))
	Expect(fails("create", "d")).To(BeFalse(), "no more than laterFailures objects may be affected")
	Expect(now.spared).To(Equal(1))
})
