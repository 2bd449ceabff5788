package doks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

func TestGodoReadsTheTeamOfAToken(t *testing.T) {
	const team = "0b5c0a52-0000-4000-8000-0000000000aa"
	plain, chosen := newLab(t), newLab(t, func(options *doks.Options) { options.Team = team })
	account, _, err := chosen.client().Account.Get(chosen.ctx)
	chosen.Expect(err).NotTo(HaveOccurred())
	chosen.Expect(account.Team.UUID).To(Equal(team))
	chosen.Expect(account.UUID).NotTo(Or(BeEmpty(), Equal(team)), "a person's UUID must differ from the team's")
	chosen.Expect(account.Status).To(Equal("active"))

	other, _, err := plain.client().Account.Get(plain.ctx)
	plain.Expect(err).NotTo(HaveOccurred())
	plain.Expect(other.Team.UUID).NotTo(Or(BeEmpty(), Equal(team)))
}

func TestWhatEachTokenMayRead(t *testing.T) {
	cases := map[string]struct {
		token string
		// account and clusters are the HTTP statuses of a request for the account, and of one for the list of clusters.
		account, clusters int
	}{
		"a token for everything": {fullToken, 200, 200},
		"a read-only token":      {readToken, 200, 200},
		"a token for clusters":   {narrowToken, 403, 200},
		"a wrong token":          {"wrong", 401, 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for path, status := range map[string]int{"/v2/account": c.account, clustersURL: c.clusters} {
				got, err := l.send(c.token, "GET", path, "")
				l.Expect(err).NotTo(HaveOccurred())
				l.Expect(got.status).To(Equal(status), path)
			}
			for _, entry := range l.cloud.Journal() {
				l.Expect(entry.Token).NotTo(Equal(c.token), "the journal must not contain the token")
			}
		})
	}
}
