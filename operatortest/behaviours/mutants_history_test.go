package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws that the final state does not show.
const (
	startsOver  mutation = "deletes what it finds half done when it starts, and creates it again"
	blanksFirst mutation = "empties a ConfigMap that it finds half done when it starts, and fills it again"
	// replacesChanged is correct.
	replacesChanged mutation = "replaces its ConfigMap if the size has changed"
)

// keepDirectly maintains the ConfigMap as these operators do.
func (r *gadgetReconciler) keepDirectly(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), found)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	_, running := r.memory.LoadOrStore(gadget.GetUID(), true)
	halfDone := !running && observedGeneration(gadget) != gadget.GetGeneration()
	switch owned := metav1.IsControlledBy(found, gadget); {
	case !owned:
	case r.flaw == replacesChanged && found.Data["size"] != desiredConfigMap(gadget).Data["size"], r.flaw == startsOver && halfDone:
		return client.IgnoreNotFound(r.Delete(ctx, found, client.Preconditions{UID: &found.UID})) // its deletion triggers another reconcile
	case r.flaw == blanksFirst && halfDone:
		blank := found.DeepCopy()
		blank.Data["size"] = ""
		if err := r.patchConfigMap(ctx, blank, found); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = pooledIt(`the behaviour "history" also checks the lifecycles of the behaviour "crash"`, func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(startsOver), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(crash.try(ctx, runner)).To(Succeed())
	g.Expect(history.afterAll(runner)).To(MatchError(ContainSubstring("ConfigMap settings was created 2 times, and once in an undisturbed lifecycle, in the trial crash/")))
})

var _ = Describe("the test kit", func() {
	catches("takes a detour after it is killed",
		mutant{history, startsOver, "ConfigMap settings was created 2 times, and once in an undisturbed lifecycle, in the trial history/killed-right-after-each-write-in-turn"},
		mutant{history, blanksFirst, `data.size of ConfigMap settings went back to "`},
	)

	accepts("ends in the same state whatever happens",
		twin{startsOver, []behaviour{crash, faults}},
		twin{blanksFirst, []behaviour{crash}},
		twin{replacesChanged, []behaviour{crash, faults, history}},
	)
})
