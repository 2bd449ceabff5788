package behaviours

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// generatesTwice looks for its ConfigMap in the cache. Undisturbed, it creates only one, even on a busy machine: it
// writes nothing to the resource before it has seen its ConfigMap, so nothing but that ConfigMap makes it reconcile
// again.
const generatesTwice mutation = "gives its ConfigMap a generated name, and creates more until it sees the first"

// Correct operators that resemble this one.
const (
	generatesName mutation = "gives its ConfigMap a generated name, and asks the API server whether it has one"
	generatesTwo  mutation = "has two ConfigMaps with generated names, which it tells apart by a label"
)

// partLabel distinguishes the ConfigMaps of generatesTwo.
const partLabel = "test.example.com/part"

// generated adapts the reference operator's description to these operators.
func generated(mutation mutation, operator operatortest.Operator) operatortest.Operator {
	switch mutation {
	case generatesName, generatesTwice, generatesTwo:
		operator.Children[0].Generated, operator.Children[0].Name = true, nil
		operator.Values = map[string][]any{"spec.configMapName": {"settings"}}
		operator.Unmeetable = nil
		operator.Fixed = map[string]string{"spec.configMapName": "the name is generated"}
	}
	if mutation == generatesTwo {
		second := operator.Children[0]
		operator.Children[0].Labels, second.Labels = map[string]string{partLabel: "one"}, map[string]string{partLabel: "two"}
		operator.Children = append(operator.Children, second)
		operator.MaxWrites++
	}
	return operator
}

// generate maintains ConfigMaps with generated names.
func (r *gadgetReconciler) generate(ctx context.Context, gadget *unstructured.Unstructured) error {
	if r.flaw == generatesTwice {
		made, err := r.generatePart(ctx, gadget, "one")
		if err != nil || made {
			return err
		}
		return r.writeStatus(ctx, gadget, "")
	}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	parts := []string{"one", "two"}
	if r.flaw != generatesTwo {
		parts = parts[:1]
	}
	for _, part := range parts {
		if _, err := r.generatePart(ctx, gadget, part); err != nil {
			return r.reportRefused(ctx, gadget, err)
		}
	}
	return r.writeStatus(ctx, gadget, "")
}

// generatePart maintains the ConfigMap of one part, and reports whether it found none and sent a create request.
func (r *gadgetReconciler) generatePart(ctx context.Context, gadget *unstructured.Unstructured, part string) (made bool, err error) {
	desired := desiredConfigMap(gadget)
	desired.Name, desired.GenerateName, desired.Labels = "", "settings-", map[string]string{partLabel: part}
	reader := r.live
	if r.flaw == generatesTwice {
		reader = r.Client
	}
	list := &corev1.ConfigMapList{}
	if err := reader.List(ctx, list, client.InNamespace(gadget.GetNamespace()), client.MatchingLabels(desired.Labels)); err != nil {
		return false, err
	}
	for i := range list.Items {
		found := &list.Items[i]
		if !metav1.IsControlledBy(found, gadget) {
			continue
		}
		changed := found.DeepCopy()
		delete(changed.Data, "colour")
		maps.Copy(changed.Data, desired.Data)
		if maps.Equal(changed.Data, found.Data) {
			return false, nil
		}
		return false, r.patchConfigMap(ctx, changed, found)
	}
	return true, r.Create(ctx, desired)
}

var _ = Describe("the test kit", func() {
	catches("creates an object with a generated name twice", mutant{stale, generatesTwice, " objects of kind ConfigMap, but should control one: settings-"})

	accepts("gives its children generated names",
		twin{generatesName, []behaviour{converges, silent, drift, update, transitions, misoperation, deletion, neighbours, crash, faults, history, stale, timeTravel, failover}},
		twin{generatesTwo, []behaviour{converges, drift, update, crash, history, timeTravel}},
	)
})

var _ = It(`the behaviour "collision" is left out if all children have generated names`, func() {
	Expect(collision.leftOut(gadgetOperator(generatesName))).To(Equal("all children have generated names, which no other object can take"))
	Expect(collision.leftOut(gadgetOperator(""))).To(BeEmpty())
	Expect(checkLeftOut(gadgetOperator(generatesName).LeftOut)).To(Succeed())
})

var _ = pooledIt("says that children with generated names can't be told apart", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(generatesTwo)
	operator.Timeout = catchTimeout
	for i := range operator.Children {
		operator.Children[i].Labels = nil
	}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(converges.try(ctx, runner)).To(MatchError(ContainSubstring("tell them apart with Child.Labels")))
})
