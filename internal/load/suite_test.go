package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// operatorVariable is the environment variable that makes the test program run as the controller of testdata/stage.
const operatorVariable = "LOAD_TEST_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(operatorVariable) != "" {
		if err := operate(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// operate makes a ConfigMap for every Gauge with one write, and reports the Gauge as ready with another. For the first
// Gauge, it makes one more write, which fails with a conflict.
func operate(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	set := flag.NewFlagSet("gauge-controller", flag.ContinueOnError)
	kubeconfig := set.String("kubeconfig", "", "")
	for _, name := range []string{"metrics-bind-address", "health-probe-bind-address", "resync-period"} {
		set.String(name, "", "")
	}
	greeting := set.String("greeting", "", "")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *greeting != "hello" || os.Getenv("ENABLE_WEBHOOKS") != "false" {
		return errors.New("expected --greeting=hello and ENABLE_WEBHOOKS=false: see startOperator in operator.go")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	writer, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return err
	}
	needed := client.ObjectKey{Namespace: namespace, Name: "scale"}
	if err := writer.Get(ctx, needed, &corev1.ConfigMap{}); err != nil {
		return fmt.Errorf("read what load.yaml needs: %w", err)
	}
	gauges := &unstructured.UnstructuredList{}
	gauges.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "GaugeList"})
	events, err := writer.Watch(ctx, gauges)
	if err != nil {
		return err
	}
	for event := range events.ResultChan() {
		gauge, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != watch.Added || unmet(gauge) == "" {
			continue
		}
		if err := errors.Join(createChild(ctx, writer, gauge), callReady(ctx, writer, gauge)); err != nil {
			return err
		}
	}
	return nil
}

func createChild(ctx context.Context, writer client.Client, gauge *unstructured.Unstructured) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gauge.GetNamespace(), Name: gauge.GetName()}}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gauge, gauge.GroupVersionKind())}
	return writer.Create(ctx, child)
}

func callReady(ctx context.Context, writer client.Client, gauge *unstructured.Unstructured) error {
	outdated := gauge.DeepCopy()
	gauge.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if err := writer.Status().Update(ctx, gauge); err != nil {
		return err
	}
	if gauge.GetName() != "gauge-1" {
		return nil
	}
	err := writer.Status().Update(ctx, outdated)
	if err == nil {
		return errors.New("expected a conflict, but the outdated status was written")
	}
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("expected a conflict: %w", err)
	}
	return nil
}
