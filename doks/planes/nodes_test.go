package planes

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/operator-workshop/doks"
)

func TestAdjustTaints(t *testing.T) {
	g := NewWithT(t)
	taint := func(key, effect string) corev1.Taint {
		return corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect)}
	}
	wanted := doks.PlaneNode{Taints: []doks.Taint{{Key: "team", Effect: "NoSchedule"}, {Key: systemTaints + "gpu", Effect: "NoSchedule"}}}
	node := &corev1.Node{}
	node.Spec.Taints = []corev1.Taint{taint(systemTaints+"not-ready", "NoExecute"), taint("former", "NoSchedule")}
	for range 2 {
		adjust(node, wanted)
		g.Expect(node.Spec.Taints).To(ConsistOf(
			taint(systemTaints+"not-ready", "NoExecute"), taint("team", "NoSchedule"), taint(systemTaints+"gpu", "NoSchedule"),
		), "Kubernetes' own taints stay, and the API server refuses a node with a taint twice")
	}
}
