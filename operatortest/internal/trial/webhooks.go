package trial

import (
	"context"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/traffic"
)

// connectTimeout bounds one attempt to reach a webhook server on this machine.
const connectTimeout = time.Second

// serveWebhooks starts an operator that serves the cluster's webhooks until the Runner is closed, and waits until its
// server accepts connections. That operator has no resources to reconcile.
func (runner *Runner) serveWebhooks(ctx context.Context) error {
	namespace, err := runner.Cluster.CreateNamespace(ctx)
	if err != nil {
		return err
	}
	serving := runner.newTrial("webhooks", namespace.Name)
	runner.webhooks = serving
	if err := serving.grantRoles(ctx); err != nil {
		return err
	}
	at := runner.Cluster.Serving
	serving.StartOn(traffic.New(), operatortest.RunOptions{Webhooks: &operatortest.WebhookServer{Port: at.Port, CertDir: at.CertDir, Only: true}})
	address := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	return serving.Within(ctx, runner.Operator.Timeout, "the operator to serve its webhooks at "+address, func(ctx context.Context) error {
		connection, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// stopServing stops the operator that serves the webhooks, and waits until it has ended, for at most Operator.Timeout.
// stopServing ignores errors.
func (t *Trial) stopServing() {
	_ = t.clear(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Namespace}})
	for _, instance := range t.instances {
		select {
		case <-instance.Done:
		case <-time.After(instance.timeout):
		}
	}
}

// unusedWebhooks returns webhook options for an operator in a trial. That operator must serve webhooks, too, but the API
// server does not call it.
func (t *Trial) unusedWebhooks() *operatortest.WebhookServer {
	port, _ := controlplane.FreePort() // without a free port, the operator will report an error
	return &operatortest.WebhookServer{Port: port, CertDir: t.Cluster.Serving.CertDir}
}
