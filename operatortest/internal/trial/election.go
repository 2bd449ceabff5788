package trial

import (
	"time"

	"example.com/operator-workshop/operatortest"
)

// The durations that Election sets are a fifth of controller-runtime's defaults.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

// Election returns the options for a candidate in an election in the trial's namespace.
func (t *Trial) Election(candidate string) *operatortest.LeaderElection {
	return &operatortest.LeaderElection{
		Namespace: t.Namespace, Identity: candidate,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	}
}

// LenientElection returns the options for a candidate that must not lose the Lease by accident: its timeouts are longer
// than those of Election, so that it keeps the Lease even if the machine stalls briefly.
func (t *Trial) LenientElection(candidate string) *operatortest.LeaderElection {
	election := t.Election(candidate)
	election.LeaseDuration, election.RenewDeadline = 5*leaseDuration, 5*renewDeadline
	return election
}
