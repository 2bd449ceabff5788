// Package serving serves webhooks with certificates of the program's own.
//
// The API server talks to webhooks over TLS only, and trusts nobody but the
// authority (CA) whose certificate their registration names, in caBundle. So a
// webhook needs three things that fit each other: a CA, a certificate that it has
// signed for the host the API server calls, and the CA's place in every
// registration. Certificates expire, so all three change, again and again. Who
// looks after that?
//
//   - [Local]: this program itself, in memory, for a run on your own machine.
//   - [Rotated]: the library cert-controller, with a Secret in the cluster.
//   - cert-manager, an operator for certificates: this package has no part in that.
package serving

import (
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Authority makes the certificate that a webhook server shows, and the CA that
// signs it, and replaces them before they expire. They are in memory only.
//
// The API server learns a CA some time after it was registered, and a request that
// it is working on may go by what was known when it came. So a rotation has three
// steps, and a request succeeds before, between and after them:
//
//  1. After two thirds of the validity a successor is made. Its CA joins the bundle, beside the old one.
//  2. After another sixth the successor's certificate is served. Everybody trusts it by now.
//  3. The old CA leaves the bundle. Nobody is shown its certificate any more.
//
// The last sixth is for what may go wrong.
type Authority struct {
	host     string
	validity time.Duration
	clock    clock.PassiveClock

	mu        sync.RWMutex
	current   *issued
	successor *issued // nil except during a rotation
}

// NewAuthority makes the first certificate for the host, which is a name or an IP
// address. Each is valid for that long, up to a second more.
func NewAuthority(host string, validity time.Duration, now clock.PassiveClock) (*Authority, error) {
	authority := &Authority{host: host, validity: validity, clock: now}
	first, err := authority.issue()
	if err != nil {
		return nil, err
	}
	authority.current = first
	return authority, nil
}

// GetCertificate is for the field of that name in [tls.Config].
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return &a.current.serving, nil
}

// Bundle returns the certificates of the CAs to trust, in PEM: what belongs into caBundle.
func (a *Authority) Bundle() []byte {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.successor == nil {
		return slices.Clone(a.current.ca)
	}
	return slices.Concat(a.current.ca, a.successor.ca)
}

// Advance takes the next step of a rotation, if one is due. Say whether the bundle
// is registered everywhere: as long as it is not, no other certificate is served.
func (a *Authority) Advance(registered bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	switch {
	case a.current.expired(now) && (a.successor == nil || a.successor.expired(now)):
		// Too late for a rotation: the machine was asleep, say. No request succeeds until the new CA is registered.
		return a.replace()
	case a.current.expired(now):
		a.promote() // whoever knows the successor is better off
	case a.successor == nil && now.Sub(a.current.from) >= a.validity/3*2:
		return a.announce()
	case a.successor != nil && registered && now.Sub(a.successor.from) >= a.validity/6:
		a.promote()
	}
	return nil
}

func (a *Authority) announce() error {
	successor, err := a.issue()
	if err != nil {
		return err
	}
	a.successor = successor
	return nil
}

func (a *Authority) promote() { a.current, a.successor = a.successor, nil }

func (a *Authority) replace() error {
	replacement, err := a.issue()
	if err != nil {
		return err
	}
	a.current, a.successor = replacement, nil
	return nil
}

func (a *Authority) issue() (*issued, error) {
	now := a.clock.Now()
	certificates, err := issue(a.host, now, now.Add(a.validity))
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", a.host, err)
	}
	return certificates, nil
}
