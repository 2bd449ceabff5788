package trial

import (
	"time"

	"example.com/operator-workshop/operatortest"
)

// The timing of elections in trials: a fifth of the usual one.
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

// LenientElection returns the options for a candidate that keeps the Lease even if the machine stalls briefly, for
// candidates from which a trial doesn't take the Lease.
func (t *Trial) LenientElection(candidate string) *operatortest.LeaderElection {
	election := t.Election(candidate)
	election.LeaseDuration, election.RenewDeadline = 5*leaseDuration, 5*renewDeadline
	return election
}
