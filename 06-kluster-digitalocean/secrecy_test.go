package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// logLevel is one level above that of the operator's most detailed lines.
const logLevel = 5

// wrongToken is a token that no account has.
const wrongToken = "dop-v1-wrong"

// logged receives everything that the operators in the suite log.
var logged = &logWatch{}

var _ = Describe("secrecy", func() {
	It("holds whatever goes wrong: no token is in a log, an event, a status or a metric", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		setToken(ctx, namespace, wrongToken)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "discreet")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		setToken(ctx, namespace, "dop-v1-with\nsomething")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenMissing)
		setToken(ctx, namespace, readOnlyTokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)

		for _, kind := range []doks.FaultKind{
			doks.FaultServerError, doks.FaultBadGateway, doks.FaultTooMany, doks.FaultUnavailable, doks.FaultCut, doks.FaultDrop,
		} {
			disturb(account, doks.Fault{Method: http.MethodGet, Path: clustersPath, Kind: kind})
		}
		errors := logged.count("Reconcile failed")
		setToken(ctx, namespace, tokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
		eventually(ctx, func(g Gomega) {
			g.Expect(eventsOf(ctx, g, kluster)).To(ContainElement(klusterv1alpha1.ReasonUnavailable), "the failures must be reported")
		})
		expectNoSecretInEvents(ctx, namespace)
		klog.Background().V(4).Info("A line for debugging")
		Expect(logged.count("A line for debugging")).To(Equal(1), "the log must be searched for tokens at all levels, see TestKluster in suite_test.go")
		Expect(logged.count("Working")).To(BeNumerically(">", 0), "the operator's log must be captured")
		Expect(logged.count("Reconcile failed")).To(BeNumerically(">", errors), "errors of the cloud must be logged")
	}, SpecTimeout(specTimeout))
})

func TestSecretsIn(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"a token":                {text: `{"message":"rejected ` + tokenFor("shop") + `"}`, want: []string{"dop-v1-"}},
		"a wrong one":            {text: "rejected " + wrongToken, want: []string{"dop-v1-"}},
		"in base64":              {text: asJSON(corev1.Secret{Data: map[string][]byte{"token": []byte(tokenFor("shop"))}}), want: []string{"ZG9wLXYx"}},
		"a kubeconfig's":         {text: "users:\n- user:\n    token: stub-0c7f", want: []string{"token: stub-"}},
		"nothing that is secret": {text: "the cloud accepts the token under the key \"token\""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(secretsIn(test.text)).To(Equal(test.want))
		})
	}
}

// secretsIn returns the beginnings of the tokens that a string contains. It finds the tokens of the tests' accounts, in
// plain text and in base64, and those in the emulator's kubeconfigs.
func secretsIn(text string) (found []string) {
	for _, beginning := range []string{"dop-v1-", "ZG9wLXYx", "token: stub-"} {
		if strings.Contains(text, beginning) {
			found = append(found, beginning)
		}
	}
	return found
}

// logWatch is a log that keeps its lines, so that expectSecrecy can search them for tokens.
type logWatch struct {
	mu    sync.Mutex
	lines []string
}

// Write keeps one line of the log, and passes it on to Ginkgo.
func (l *logWatch) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return GinkgoWriter.Write(line)
}

// count returns the number of lines that contain the words.
func (l *logWatch) count(words string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, words) {
			count++
		}
	}
	return count
}

// expectSecrecy searches the logs of all specs and the metrics for tokens, at the end of the suite.
func expectSecrecy() {
	GinkgoHelper()
	logged.mu.Lock()
	defer logged.mu.Unlock()
	for _, line := range logged.lines {
		Expect(secretsIn(line)).To(BeEmpty(), "a token is in the log: %s", line)
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		Expect(secretsIn(family.String())).To(BeEmpty(), "a token is in the metric %s", family.GetName())
	}
}

// expectNoSecretInEvents searches the events in a namespace, and the metadata of its Secrets, for tokens.
func expectNoSecretInEvents(ctx context.Context, namespace string) {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(cluster.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		Expect(secretsIn(asJSON(&list.Items[i]))).To(BeEmpty(), "a token is in the event %s", list.Items[i].Reason)
	}
	secrets := &corev1.SecretList{}
	Expect(cluster.Client.List(ctx, secrets, client.InNamespace(namespace))).To(Succeed())
	for i := range secrets.Items {
		Expect(secretsIn(asJSON(secrets.Items[i].ObjectMeta))).To(BeEmpty(), "a token is in the metadata of Secret %s", secrets.Items[i].Name)
	}
}
