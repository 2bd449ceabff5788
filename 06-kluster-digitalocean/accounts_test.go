package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
	"example.com/operator-workshop/operatortest"
)

// accounts serves one API for many accounts. Each namespace's token gives access to a separate emulator, so that
// parallel tests may use the same names.
type accounts struct {
	server *httptest.Server

	mu     sync.Mutex
	known  map[string]*doks.Emulator
	closed map[string]bool
	// answers contains functions that may answer requests in place of the emulator (see answer).
	answers map[string]func(http.ResponseWriter, *http.Request) bool
}

var _ operatortest.Interrupter = (*accounts)(nil)

func newAccounts() *accounts {
	a := &accounts{known: map[string]*doks.Emulator{}, closed: map[string]bool{}, answers: map[string]func(http.ResponseWriter, *http.Request) bool{}}
	a.server = httptest.NewServer(a)
	return a
}

func (a *accounts) close() { a.server.Close() }

func (a *accounts) url() string { return a.server.URL + "/" }

// tokenFor returns the token of a namespace's account. Tests check that it appears in no log, event or status.
func tokenFor(namespace string) string { return "dop-v1-secret-of-" + namespace }

// readOnlyTokenFor returns a read-only token of a namespace's account.
func readOnlyTokenFor(namespace string) string { return "dop-v1-reader-of-" + namespace }

// clusterTokenFor returns a token of a namespace's account that can't read the account's identity.
func clusterTokenFor(namespace string) string { return "dop-v1-narrow-of-" + namespace }

// teamOf returns the identity of a namespace's account.
func teamOf(namespace string) string {
	return uuid.NewSHA1(uuid.NameSpaceDNS, []byte(namespace)).String()
}

// of returns the account of a namespace, and creates it if it doesn't exist yet.
func (a *accounts) of(namespace string) *doks.Emulator {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[namespace] == nil {
		a.known[namespace] = newAccount(namespace, func(*doks.Options) {})
	}
	return a.known[namespace]
}

// open creates a namespace's account, or replaces it with a new one. change edits the default options.
func (a *accounts) open(namespace string, change func(*doks.Options)) *doks.Emulator {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[namespace] = newAccount(namespace, change)
	return a.known[namespace]
}

func newAccount(namespace string, change func(*doks.Options)) *doks.Emulator {
	options := doks.Options{
		Tokens:         []string{tokenFor(namespace)},
		ReadOnlyTokens: []string{readOnlyTokenFor(namespace)},
		ClusterTokens:  []string{clusterTokenFor(namespace)},
		Team:           teamOf(namespace),
		ProvisionTime:  50 * time.Millisecond,
		NodeTime:       25 * time.Millisecond,
		UpgradeTime:    50 * time.Millisecond,
		DeleteTime:     50 * time.Millisecond,
	}
	change(&options)
	made, err := doks.New(options)
	if err != nil {
		panic(err) // the tests write the options themselves
	}
	return made
}

// ServeHTTP passes a request to the account that its token belongs to, unless Fail has closed the account or a function
// handles the request (see answer).
func (a *accounts) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	namespace := namespaceOf(request)
	a.mu.Lock()
	closed, answer := a.closed[namespace], a.answers[namespace]
	a.mu.Unlock()
	if closed {
		http.Error(writer, `{"id":"server_error","message":"closed for the test"}`, http.StatusServiceUnavailable)
		return
	}
	if answer != nil && answer(writer, request) {
		return
	}
	a.of(namespace).ServeHTTP(writer, request)
}

// answer lets a function handle the requests to a namespace's account, until restore is called. If the function returns
// false, the emulator handles the request.
func (a *accounts) answer(namespace string, answer func(http.ResponseWriter, *http.Request) bool) (restore func()) {
	set := func(answer func(http.ResponseWriter, *http.Request) bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answers[namespace] = answer
	}
	set(answer)
	return func() { set(nil) }
}

// namespaceOf returns the namespace whose account the request's token gives access to.
func namespaceOf(request *http.Request) string {
	for _, prefix := range []string{tokenFor(""), readOnlyTokenFor(""), clusterTokenFor("")} {
		if namespace, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "+prefix); found {
			return namespace
		}
	}
	return "nobody" // any account refuses the token
}

// Snapshot implements operatortest.External.
func (a *accounts) Snapshot(_ context.Context, namespace string) (string, error) {
	var lines []string
	for _, cluster := range a.of(namespace).Clusters() {
		lines = append(lines, fmt.Sprintf("%s in %s runs %s: %s, highly available: %v",
			cluster.Name, cluster.Region, cluster.Version, cluster.Status.State, cluster.HA))
		for _, pool := range cluster.NodePools {
			lines = append(lines, fmt.Sprintf("  pool %s of %d %s, autoscale %v %d-%d, labels %v, taints %v",
				pool.Name, pool.Count, pool.Size, pool.AutoScale, pool.MinNodes, pool.MaxNodes, pool.Labels, pool.Taints))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// Fail implements operatortest.External.
func (a *accounts) Fail(namespace string) (restore func()) {
	set := func(closed bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.closed[namespace] = closed
	}
	set(true)
	return func() { set(false) }
}

// Interrupt implements operatortest.Interrupter.
func (a *accounts) Interrupt(namespace string, begin func(call string) (end func() error, err error)) (restore func()) {
	account := a.of(namespace)
	account.Interrupt(func(call doks.Call) (func() error, error) {
		if !call.Write {
			return nil, nil
		}
		return begin(call.Operation)
	})
	return func() { account.Interrupt(nil) }
}

// createTokens creates two Secrets. Each holds the token of the namespace's account under two keys.
func createTokens(ctx context.Context, writer client.Client, namespace string) error {
	var errs []error
	for _, name := range []string{"digitalocean", "another"} {
		errs = append(errs, writer.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Type:       klusterv1alpha1.TokenSecretType,
			Data:       map[string][]byte{"token": []byte(tokenFor(namespace)), "another": []byte(tokenFor(namespace))},
		}))
	}
	return errors.Join(errs...)
}
