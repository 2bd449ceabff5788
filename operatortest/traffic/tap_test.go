package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// waitTimeout bounds each wait in these tests, whose servers run in the test process.
const waitTimeout = 10 * time.Second

// errBroken is the error that the tests inject, for example as the error of a request.
var errBroken = errors.New("broken by the test")

// server is an API server that stores nothing: it counts the requests it gets,
// and answers each with an empty ConfigMap.
type server struct {
	config   *rest.Config
	received atomic.Int64
}

func newServer(t *testing.T) *server {
	made := &server{}
	listening := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
		made.received.Add(1)
		reply.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(reply, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)
	}))
	t.Cleanup(listening.Close)
	made.config = &rest.Config{Host: listening.URL, QPS: -1}
	return made
}

// newClient makes a client from the Tap's configuration, as an operator would.
func newClient(g Gomega, tap *Tap, config *rest.Config) kubernetes.Interface {
	clients, err := kubernetes.NewForConfig(tap.Config(config))
	g.Expect(err).NotTo(HaveOccurred())
	return clients
}

func create(ctx context.Context, clients kubernetes.Interface) error {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err := clients.CoreV1().ConfigMaps("here").Create(ctx, settings, metav1.CreateOptions{})
	return err
}

func TestRules(t *testing.T) {
	tests := map[string]struct {
		action Action
		// want checks the request's error. It is nil if there must be none.
		want func(error) bool
		// received means that the API server must get the request; dead means that nothing passes after it.
		received, dead bool
		status         int
		note           string
	}{
		"a request passes": {received: true, status: http.StatusOK},
		"an answer replaces the API server's": {
			action: Action{Answer: &Answer{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}},
			want:   apierrors.IsConflict, status: http.StatusConflict,
		},
		"a dropped request does not arrive": {action: Action{Drop: errBroken}, want: isError(errBroken), note: errBroken.Error()},
		"a request whose reply is lost takes effect": {
			action: Action{Lose: io.ErrUnexpectedEOF}, want: isError(io.ErrUnexpectedEOF),
			received: true, status: http.StatusOK, note: "its reply was lost: unexpected EOF",
		},
		"a kill right before the request": {action: Action{Kill: true, Drop: errBroken}, want: isError(ErrKilled), dead: true, note: ErrKilled.Error()},
		"a kill right after the request": {
			action: Action{Kill: true}, want: isError(ErrKilled),
			received: true, dead: true, status: http.StatusOK, note: "its reply was lost: " + ErrKilled.Error(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, server, tap := NewWithT(t), newServer(t), New()
			clients := newClient(g, tap, server.config)
			tap.SetRule(func(Request) Action { return test.action })

			err := create(t.Context(), clients)

			g.Expect(err == nil).To(Equal(test.want == nil), "the error is %v", err)
			g.Expect(test.want == nil || test.want(err)).To(BeTrue(), "the error is %v", err)
			g.Expect(server.received.Load() == 1).To(Equal(test.received), "the API server received %d requests", server.received.Load())
			log := tap.Requests()
			g.Expect(log).To(HaveLen(1))
			g.Expect(log[0].Done).To(BeTrue())
			g.Expect(log[0].Status).To(Equal(test.status))
			g.Expect(log[0].Note).To(Equal(test.note))
			g.Expect(tap.Killed()).To(Equal(test.dead))

			tap.SetRule(nil)
			before := server.received.Load()
			if err := create(t.Context(), clients); test.dead {
				g.Expect(err).To(MatchError(ErrKilled))
				g.Expect(server.received.Load()).To(Equal(before), "a dead operator's request must not arrive")
				return
			}
			g.Expect(server.received.Load()).To(Equal(before+1), "without a kill, later requests must pass")
		})
	}
}

func TestActivity(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	var during Activity
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return observed{next, func() { during = tap.Activity() }}
	})
	clients := newClient(g, tap, config)
	g.Expect(tap.Activity()).To(Equal(Activity{}))
	for range 2 {
		g.Expect(create(t.Context(), clients)).To(Succeed())
	}
	log := tap.Requests()
	gap := log[1].At - log[0].At
	g.Expect(during).To(Equal(Activity{Requests: 2, InFlight: 1, LongestGap: gap}))
	g.Expect(tap.Activity()).To(Equal(Activity{Requests: 2, LongestGap: gap}))
	tap.SetRule(func(Request) Action { return Action{Lose: io.ErrUnexpectedEOF} })
	g.Expect(create(t.Context(), clients)).NotTo(Succeed())
	tap.SetRule(func(Request) Action { return Action{Answer: &Answer{Code: http.StatusConflict}} })
	g.Expect(create(t.Context(), clients)).NotTo(Succeed())
	tap.SetRule(func(Request) Action { return Action{Answer: &Answer{Code: http.StatusNotFound}} })
	_, err := clients.CoreV1().ConfigMaps("here").Get(t.Context(), "absent", metav1.GetOptions{})
	g.Expect(err).To(HaveOccurred(), "the object must be absent, which doesn't count as a failure")
	g.Expect(tap.Activity().Failures).To(Equal(2))
	tap.CutWatches()
	g.Expect(tap.Activity().Failures).To(Equal(3))
	release := tap.Hold(func(Request) bool { return true })
	g.Expect(tap.Activity().Misled).To(BeTrue())
	release(Late)
	catchUp := tap.ShowPast("1", func(Request) bool { return true })
	g.Expect(tap.Activity().Misled).To(BeTrue())
	catchUp()
	g.Expect(tap.Activity().Misled).To(BeFalse())
}

func TestActivityOfAWatch(t *testing.T) {
	g, tap := NewWithT(t), New()
	reply, server := io.Pipe()
	body := tap.openWatch(Request{Verb: "watch", Lists: true}, nil, reply)
	g.Expect(tap.Activity()).To(Equal(Activity{InFlight: 1}), "a watch must be in flight while the objects with which it begins are still arriving")
	for _, each := range []json.RawMessage{event("ADDED", "a", 1), initialEnd} {
		_, err := server.Write(each)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(tap.Activity).WithTimeout(waitTimeout).Should(Equal(Activity{Events: 1}))
	g.Expect(server.Close()).To(Succeed())
	g.Eventually(tap.Activity).WithTimeout(waitTimeout).Should(Equal(Activity{Events: 1, Failures: 1}))
	g.Expect(body.Close()).To(Succeed())
	reply, _ = io.Pipe()
	g.Expect(tap.openWatch(Request{Verb: "watch", Lists: true}, nil, reply).Close()).To(Succeed())
	g.Expect(tap.Activity().InFlight).To(BeZero())
}

// observed calls look while a request is in flight.
type observed struct {
	next http.RoundTripper
	look func()
}

// RoundTrip implements http.RoundTripper.
func (o observed) RoundTrip(request *http.Request) (*http.Response, error) {
	o.look()
	return o.next.RoundTrip(request)
}

func isError(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func TestRuleSeesTheRequest(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	var seen Request
	tap.SetRule(func(request Request) Action {
		seen = request
		return Action{}
	})
	g.Expect(create(t.Context(), newClient(g, tap, server.config))).To(Succeed())
	g.Expect(seen.Kind()).To(Equal("create configmaps"))
	g.Expect(seen.Namespace + "/" + seen.Name).To(Equal("here/settings"))
	g.Expect(seen.Done).To(BeFalse(), "a rule must decide before the request is sent")
}

func TestAnswerLooksLikeTheAPIServers(t *testing.T) {
	tests := map[string]struct {
		retryAfter time.Duration
		want       string
	}{
		"without a time to wait": {want: ""},
		"in whole seconds":       {retryAfter: 2 * time.Second, want: "2"},
		"rounded to seconds":     {retryAfter: 1600 * time.Millisecond, want: "2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := Answer{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: test.retryAfter}
			response, err := answer.response(&http.Request{})
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.Header.Get("Retry-After")).To(Equal(test.want))
			g.Expect(response.Header.Get("Content-Type")).To(Equal("application/json"))
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body)).To(And(ContainSubstring(`"reason":"TooManyRequests"`), ContainSubstring(`"code":429`)))
		})
	}
}

// client-go itself retries a request whose reply has the status 429 and a Retry-After header; the operator only sees a
// delay.
func TestRetryAfterIsObeyed(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	asked := 0
	tap.SetRule(func(Request) Action {
		if asked++; asked > 1 {
			return Action{}
		}
		return Action{Answer: &Answer{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: time.Second}}
	})
	g.Expect(create(t.Context(), newClient(g, tap, server.config))).To(Succeed())
	log := tap.Requests()
	g.Expect(log).To(HaveLen(2))
	g.Expect(log[1].At - log[0].At).To(BeNumerically(">=", time.Second))
}

func TestHeldRequest(t *testing.T) {
	tests := map[string]struct {
		// end lets the request continue, makes the operator cancel it, or kills the operator.
		end      func(tap *Tap, release chan struct{}, cancel context.CancelFunc)
		received int64
		canceled bool
	}{
		"continues when it is released": {end: func(_ *Tap, release chan struct{}, _ context.CancelFunc) { close(release) }, received: 1},
		"ends when it is cancelled":     {end: func(_ *Tap, _ chan struct{}, cancel context.CancelFunc) { cancel() }, canceled: true},
		"never arrives if the operator is killed meanwhile": {end: func(tap *Tap, release chan struct{}, _ context.CancelFunc) {
			tap.Kill()
			close(release)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, server, tap := NewWithT(t), newServer(t), New()
			clients := newClient(g, tap, server.config)
			release := make(chan struct{})
			tap.SetRule(func(Request) Action { return Action{Hold: release} })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- create(ctx, clients) }()
			g.Eventually(tap.Requests).WithTimeout(waitTimeout).Should(HaveLen(1))
			g.Expect(server.received.Load()).To(BeZero(), "a held request must not arrive")

			test.end(tap, release, cancel)

			g.Eventually(done).WithTimeout(waitTimeout).Should(Receive(Or(BeNil(), MatchError(context.Canceled), MatchError(ErrKilled))))
			g.Expect(server.received.Load()).To(Equal(test.received))
			g.Expect(tap.Requests()[0].Canceled).To(Equal(test.canceled))
		})
	}
}

func TestKill(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	tap.Kill()
	g.Expect(create(t.Context(), newClient(g, tap, server.config))).To(MatchError(ErrKilled))
	g.Expect(server.received.Load()).To(BeZero())
	g.Expect(tap.Requests()[0].String()).To(HaveSuffix("create configmaps here/settings: no reply yet, " + ErrKilled.Error()))
}

func TestUnreadableBody(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	transport := &transport{tap: tap, next: http.DefaultTransport}
	request, err := http.NewRequest(http.MethodPost, server.config.Host+configMaps, io.MultiReader(strings.NewReader("{"), &brokenReader{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(failure(transport, request)).To(And(MatchError(errBroken), MatchError(ContainSubstring("read the body of a request"))))
}

// failure returns the error of a request that is expected to fail.
func failure(transport http.RoundTripper, request *http.Request) error {
	response, err := transport.RoundTrip(request)
	if response != nil {
		_ = response.Body.Close()
	}
	return err
}

type brokenReader struct{}

func (*brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// An operator has many goroutines, and the kit reads the log, cuts watches and holds back events at the same time.
func TestConcurrentRequests(t *testing.T) {
	g, server, tap := NewWithT(t), newServer(t), New()
	const goroutines, each = 8, 20
	clients := newClient(g, tap, server.config)
	inRule := 0
	tap.SetRule(func(Request) Action {
		inRule++ // without a lock: calls to a rule never overlap
		return Action{}
	})
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for range each {
				_ = create(t.Context(), clients)
				_ = tap.Requests()
				tap.CutWatches()
				tap.Hold(func(Request) bool { return true })(Latest)
			}
		})
	}
	group.Wait()
	g.Expect(inRule).To(Equal(goroutines * each))
	log := tap.Requests()
	g.Expect(log).To(HaveLen(goroutines * each))
	for i, request := range log {
		g.Expect(request.Done).To(BeTrue(), request.String())
		g.Expect(i == 0 || request.At >= log[i-1].At).To(BeTrue(), "the log must be in the order in which the requests were made")
	}
}
