package behaviours

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// hashesName makes different writes in each lifecycle, because each gadget has a different UID. So the kit finds none
// of the writes that it has recorded, and can't kill the operator at them.
const hashesName mutation = "names its ConfigMap after a hash of the gadget's UID, and writes nothing else"

// hashing describes the operator hashesName.
func hashing(operator operatortest.Operator) operatortest.Operator {
	operator.Children[0].Generated, operator.Children[0].Name = true, nil
	operator.Values, operator.Unmeetable, operator.External = nil, nil, nil
	operator.Fixed = map[string]string{"spec.configMapName": "the name is a hash"}
	operator.Converged = func(*unstructured.Unstructured) error { return nil }
	return operator
}

func (r *gadgetReconciler) hashName(ctx context.Context, gadget *unstructured.Unstructured) error {
	desired := desiredConfigMap(gadget)
	desired.Name = fmt.Sprintf("settings-%x", sha256.Sum256([]byte(gadget.GetUID())))[:20]
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsNotFound(err) {
		return r.Create(ctx, desired)
	}
	if err != nil || maps.Equal(found.Data, desired.Data) {
		return err
	}
	changed := found.DeepCopy()
	changed.Data = desired.Data
	return r.patchConfigMap(ctx, changed, found)
}

var _ = Describe("the test kit", func() {
	catches("makes different writes in each lifecycle", mutant{crash, hashesName, "found that it repeated none of these: [create configmaps settings-"})
})
