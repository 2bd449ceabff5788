package planes

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"example.com/operator-workshop/doks"
)

const (
	// simulated is the annotation that marks a node as simulated by kwok.
	simulated = "kwok.x-k8s.io/node"
	// ownLabels is the annotation that lists the labels copied from a PlaneNode, so that a later call to SetNodes can
	// remove them.
	ownLabels = "emulator.digitalocean.com/labels"
	// systemTaints is the prefix of taints that Kubernetes sets by itself.
	systemTaints = "node.kubernetes.io/"

	readyLimit    = time.Minute
	readyInterval = 100 * time.Millisecond
)

// SetNodes makes, changes and removes nodes, and waits until the wanted nodes are ready.
func (k *Kwok) SetNodes(ctx context.Context, id string, nodes []doks.PlaneNode) error {
	_, client, err := k.connect(id)
	if err != nil {
		return err
	}
	if err := removeOthers(ctx, client, nodes); err != nil {
		return err
	}
	for _, each := range nodes {
		if err := setNode(ctx, client, each); err != nil {
			return fmt.Errorf("set node %s: %w", each.Name, err)
		}
	}
	return waitReady(ctx, client)
}

func removeOthers(ctx context.Context, client kubernetes.Interface, wanted []doks.PlaneNode) error {
	found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, each := range found.Items {
		if slices.ContainsFunc(wanted, func(n doks.PlaneNode) bool { return n.Name == each.Name }) {
			continue
		}
		err := client.CoreV1().Nodes().Delete(ctx, each.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: %w", each.Name, err)
		}
	}
	return nil
}

// setNode creates a node, or updates it if it differs from the desired one.
func setNode(ctx context.Context, client kubernetes.Interface, wanted doks.PlaneNode) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := client.CoreV1().Nodes().Get(ctx, wanted.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = client.CoreV1().Nodes().Create(ctx, newNode(wanted), metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		changed := current.DeepCopy()
		adjust(changed, wanted)
		if equality.Semantic.DeepEqual(current, changed) {
			return nil
		}
		_, err = client.CoreV1().Nodes().Update(ctx, changed, metav1.UpdateOptions{})
		return err
	})
}

// newNode returns a node with the capacity that its machine would have.
func newNode(wanted doks.PlaneNode) *corev1.Node {
	room := capacity(wanted.Labels[corev1.LabelInstanceTypeStable])
	made := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: wanted.Name, Annotations: map[string]string{simulated: "fake"}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	adjust(made, wanted)
	return made
}

// adjust sets the fields that belong to the emulator, and leaves the rest to Kubernetes.
func adjust(node *corev1.Node, wanted doks.PlaneNode) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	for name := range strings.SplitSeq(node.Annotations[ownLabels], ",") {
		delete(node.Labels, name)
	}
	maps.Copy(node.Labels, wanted.Labels)
	node.Labels[corev1.LabelHostname] = node.Name
	node.Annotations[ownLabels] = strings.Join(slices.Sorted(maps.Keys(wanted.Labels)), ",")
	node.Spec.Unschedulable = wanted.Draining
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		again := func(each doks.Taint) bool { return each.Key == t.Key && each.Effect == string(t.Effect) }
		return !strings.HasPrefix(t.Key, systemTaints) || slices.ContainsFunc(wanted.Taints, again)
	})
	for _, each := range wanted.Taints {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: each.Key, Value: each.Value, Effect: corev1.TaintEffect(each.Effect)})
	}
}

// size matches the processors and the memory in a machine's name, such as s-2vcpu-4gb.
var size = regexp.MustCompile(`(\d+)vcpu-(\d+)gb$`)

func capacity(slug string) corev1.ResourceList {
	processors, memory := "2", "4Gi" // for names without these numbers
	if found := size.FindStringSubmatch(slug); found != nil {
		processors, memory = found[1], found[2]+"Gi"
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(processors),
		corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

// waitReady waits until kwok has made all the nodes ready.
func waitReady(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil // retry
		}
		return !slices.ContainsFunc(found.Items, func(n corev1.Node) bool { return !isReady(n) }), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the nodes are ready: %w", err)
	}
	return nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
