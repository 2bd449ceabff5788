package controller_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// logLevel is the highest level that the command allows. From level 8 on, client-go logs
// the bodies of requests and responses, and so Secrets.
const logLevel = 7

// least is the minimum number of strings from each place in a run of all specs; most of them come
// from the shared tests. If the suite has recorded fewer, it probably looks in the wrong place.
var least = map[string]int{inLog: 3000, inEvent: 150, inPassword: 300, inMetadata: 200, inMetrics: 50}

// leastSecrets is the minimum number of secrets in a run of all specs.
const leastSecrets = 250

// newLogger returns a logger that records every line up to logLevel, and writes errors and lines of level 0 to Ginkgo's
// report. Unlike the operator's own logger, it logs whole objects, which makes the test stricter.
func newLogger() logr.Logger {
	write := func(prefix, line string) {
		disclosed.note(inLog, prefix+": "+line)
		if isError := !strings.HasPrefix(line, `"level"=`); isError || strings.HasPrefix(line, `"level"=0 `) {
			fmt.Fprintf(GinkgoWriter, "%s: %s\n", prefix, line)
		}
	}
	return funcr.New(write, funcr.Options{Verbosity: logLevel})
}

// watchDisclosures records the operator's Secrets, all Passwords and all events from now on, until the suite ends. Then
// expectSecrecy searches the recorded strings for passwords and keys.
func watchDisclosures() {
	GinkgoHelper()
	DeferCleanup(expectSecrecy) // after the watches have ended
	follow(&corev1.SecretList{}, noteSecret)
	follow(&secretv1.PasswordList{}, func(password *secretv1.Password) { disclosed.note(inPassword, asJSON(password)) })
	follow(&eventsv1.EventList{}, func(event *eventsv1.Event) { disclosed.note(inEvent, asJSON(event)) })
}

// noteSecret records the password, the fingerprint's key and the metadata of a Secret if it has a fingerprint, even if
// the operator's label or the owner was removed.
func noteSecret(secret *corev1.Secret) {
	if secret.Annotations["secret.example.com/fingerprint"] == "" {
		return
	}
	name := secret.Namespace + "/" + secret.Name
	disclosed.keep(secret.Data["password"], "the password of Secret "+name)
	disclosed.keep(secret.Data["fingerprint-key"], "the fingerprint's key of Secret "+name)
	disclosed.note(inMetadata, asJSON(&secret.ObjectMeta))
}

// follow calls handle with every new version of an object of the list's kind, until the suite ends. The API server ends
// a watch now and then, and when a CRD changes; follow then starts a new one.
func follow[T client.Object](list client.ObjectList, handle func(T)) {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	Expect(watcher.List(ctx, list)).To(Succeed())
	again := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return watcher.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options})
	}
	watching, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: again})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watching.ResultChan() {
			if object, isWanted := event.Object.(T); isWanted {
				handle(object)
			}
		}
	}()
	DeferCleanup(func() {
		Expect(ended).NotTo(BeClosed(), "a watch that has ended misses changes")
		cancel()
		Eventually(ended).WithTimeout(convergeTimeout).Should(BeClosed())
	})
}

// noteMetrics records the metrics that /metrics would serve.
func noteMetrics() {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		disclosed.note(inMetrics, family.String())
	}
}

// expectSecrecy records the metrics, and searches all recorded strings for every secret. If all specs have run, it
// also checks that enough was recorded.
func expectSecrecy() {
	GinkgoHelper()
	noteMetrics()
	Expect(disclosed.leaks()).To(BeEmpty(), "passwords and keys must be in Secrets only")
	if !everySpecRuns() {
		return
	}
	texts, secrets := disclosed.sizes()
	Expect(secrets).To(BeNumerically(">=", leastSecrets), "with too few secrets, the search proves nothing, see noteSecret")
	for where, count := range least {
		Expect(texts[where]).To(BeNumerically(">=", count), "too few texts were recorded for %q, so the search proves nothing", where)
	}
}

// everySpecRuns is false if flags of `go test` select only some of the specs.
func everySpecRuns() bool {
	suite, _ := GinkgoConfiguration()
	chosen := suite.LabelFilter != "" || len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) > 0
	return !chosen
}
